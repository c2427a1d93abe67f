"""The least that a service in Python does for an upload, as a floor.

aiohttp takes the body over TLS into a memory file, and answers with the same picture each time.

The arguments are the port, the certificate, its key, and the file of the picture.
"""

from __future__ import annotations

import os
import ssl
import sys
from pathlib import Path

from aiohttp import web

from imgsvc_http.serve import event_loop


def serve(port: str, certificate: str, key: str, picture: str) -> None:
    answer = Path(picture).read_bytes()

    async def take(request: web.Request) -> web.Response:
        file = os.memfd_create("upload")
        try:
            async for chunk in request.content.iter_any():
                os.write(file, chunk)
        finally:
            os.close(file)
        return web.Response(body=answer, content_type="image/jpeg")

    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    application = web.Application()
    application.router.add_post("/1.0/upload", take)
    web.run_app(
        application, host="localhost", port=int(port), ssl_context=tls, access_log=None, loop=event_loop()
    )


if __name__ == "__main__":
    serve(*sys.argv[1:])
