"""Puts time between a program and a server: whatever is sent in either direction arrives so many milliseconds later.

    distance.py LISTENING-PORT SERVER-PORT MILLISECONDS
"""
import asyncio
import sys


class Direction(asyncio.Protocol):
    """What comes in at one connection goes out at the other one, later."""

    def __init__(self, seconds):
        self.seconds, self.transport, self.other, self.early = seconds, None, None, []

    def connection_made(self, transport):
        self.transport = transport

    def goes_to(self, other):
        self.other = other
        for data in self.early:
            self.data_received(data)

    def data_received(self, data):
        if self.other is None:
            self.early.append(data)
        else:
            asyncio.get_running_loop().call_later(self.seconds, self.other.transport.write, data)

    def connection_lost(self, _):
        if self.other:
            asyncio.get_running_loop().call_later(self.seconds, self.other.transport.close)


async def main(listening, server, seconds):
    loop = asyncio.get_running_loop()

    class Client(Direction):
        def connection_made(self, transport):
            super().connection_made(transport)
            self.connecting = asyncio.create_task(self.connect())

        async def connect(self):
            there = Direction(seconds)
            await loop.create_connection(lambda: there, "127.0.0.1", server)
            there.goes_to(self)
            self.goes_to(there)

    listener = await loop.create_server(lambda: Client(seconds), "127.0.0.1", listening)
    await listener.serve_forever()


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000))
