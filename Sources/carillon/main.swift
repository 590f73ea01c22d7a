import Glibc
import Worker

StandardStreams.prepare()
exit(await Program.run(Array(CommandLine.arguments.dropFirst())).rawValue)
