import Extensions
import JSON
import Worker

/// `carillon extension`, in a binary that brings service extensions along.
enum OwnExtensionCommand {
  private static let name = Argument("NAME", "The extension, as the extensions' file has it in \"use\".")

  static let command = Command(
    OwnExtension.command, "runs a service extension of this binary as a worker's child",
    discussion:
      "A worker calls it. It reads requests from standard input and answers on standard output, one JSON-RPC 2.0 message in a line, until the input ends.",
    arguments: [name], groups: [],
    examples: [Example("\(OwnExtension.command) NAME", "to speak with it by hand")]
  ) { values in
    let known = Program.extensions
    guard let own = known.first(where: { $0.name == values[name][0] }) else {
      throw Failure(
        .wrongUsage,
        "this binary has no extension \(PrintedText.echo(values[name][0])); it has: \(known.map(\.name).joined(separator: ", "))")
    }
    await ExtensionRunner(own).run()
    return .done
  }
}
