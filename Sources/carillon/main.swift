import Glibc
import Worker

exit(await Program.run(Array(CommandLine.arguments.dropFirst())).rawValue)
