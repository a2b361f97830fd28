"""An HTTP server on the loopback for the socket shape: ``python -m benchmarks.server full|tiny`` prints its port, serves the
reply in chunks of 1,400 bytes to any request, and ends when its standard input does."""

from __future__ import annotations

import asyncio
import sys

from .shapes_sdk import chat

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"


async def main(tiny: bool) -> None:
    body = [HEAD, *(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chat(tiny)), b"0\r\n\r\n"]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lengths = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        await reader.readexactly(sum(lengths))
        for i, chunk in enumerate(body):
            writer.write(chunk)
            if i % 32 == 0:
                await writer.drain()
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.buffer.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] == "tiny"))
