"""A web service that answers each POST alike, as fast as Python can: prints its port."""
import asyncio
import json

ANSWER = json.dumps({"patch": {"aps": {"thread-id": "asked"}}}).encode()
RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER)


class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.begun = transport, b""

    def data_received(self, data):
        self.begun += data
        while True:
            head = self.begun.find(b"\r\n\r\n")
            if head < 0:
                return
            length = self.begun[:head].lower().split(b"content-length:")[1].split(b"\r\n")[0]
            end = head + 4 + int(length)
            if len(self.begun) < end:
                return
            self.begun = self.begun[end:]
            self.transport.write(RESPONSE)


async def main():
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
