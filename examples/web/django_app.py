"""A run behind a Django view, served by ASGI.

Start it with ``python examples/web/django_app.py``, and ask it something with
``curl -N localhost:8000/chat -d '{"prompt": "hi"}'``.
"""

from __future__ import annotations

from assistant import agent, read, serve
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from golem.web import HEADERS, sse


@csrf_exempt  # for curl; a page of your own sends Django's token
@require_POST
async def chat(request: HttpRequest) -> HttpResponseBase:
    """Answer a question as an event stream; when the client leaves, the run is cancelled."""
    try:
        prompt, history = read(request.body)
    except ValueError as error:
        return JsonResponse({"error": str(error)}, status=400)
    return StreamingHttpResponse(sse(agent.stream(prompt, history=history)), headers=dict(HEADERS))


urlpatterns = [path("chat", chat)]

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["localhost", "127.0.0.1"], MIDDLEWARE=[])
app = get_asgi_application()

if __name__ == "__main__":
    serve(app)
