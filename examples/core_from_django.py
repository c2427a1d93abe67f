"""The library in an asynchronous view of Django: ``uvicorn examples.core_from_django:app``, then

``curl --data-binary @examples/pictures/coffee.heic 'localhost:8000/avatars' -o avatar.webp``
"""

from __future__ import annotations

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

import imgsvc_core as imgsvc

AVATAR = [
    imgsvc.Resize(width=200, height=200, mode="fit"),
    imgsvc.Output(format="webp"),
]


@csrf_exempt
async def avatar(request: HttpRequest) -> HttpResponse:
    """The picture in the body as a square of 200 pixels."""
    try:
        result = await imgsvc.aprocess(request.body, AVATAR, limits=imgsvc.Limits(seconds=10))
    except imgsvc.ImgsvcError as error:
        return JsonResponse({"error": error.slug, "message": error.message}, status=422)
    return HttpResponse(result.data, content_type=result.media_type)


urlpatterns = [path("avatars", avatar)]

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], DATA_UPLOAD_MAX_MEMORY_SIZE=20_000_000)
app = get_asgi_application()
