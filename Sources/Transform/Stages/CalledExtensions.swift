import Extensions
import Notifications

/// What the extensions that take their time have made of a request. It is kept as long as the request is in flight, so that they are not
/// called again where the request is started again.
final class CalledExtensions {
  /// The extensions of the file that was in force then.
  let chain: ExtensionChain
  /// Of those that are called once for a request.
  let run: ExtensionRun
  /// Of all that are called, for each variant that there was; nil where those are not called yet.
  private let runs: VariantPassages.Runs?
  /// They were not called, since nobody was going to be shown the notification: that may change.
  let isGuess: Bool
  /// When that was: the loop's milliseconds.
  private let time: UInt64

  init(
    _ chain: ExtensionChain, _ run: ExtensionRun, _ runs: VariantPassages.Runs? = [:], at time: UInt64, isGuess: Bool = false
  ) {
    (self.chain, self.run, self.runs, self.time, self.isGuess) = (chain, run, runs, time, isGuess)
  }

  /// What was made for a device; those that were not called for it say so.
  ///
  /// - Parameter device: its token.
  func run(
    for device: @autoclosure () -> String, _ locale: String?, of request: ExtensionRequest, _ rules: ContentRules
  ) -> ExtensionRun {
    guard let variant = chain.variant(of: device(), locale) else { return run }
    if let run = runs?[variant] { return run }
    var run = run
    run.pass(chain.varied, of: request, rules, callingNone: isGuess ? .settled : .unknown)
    return run
  }

  /// Whether nothing is left to be called.
  var isComplete: Bool { runs != nil }

  /// The same for devices that get the same, where all extensions are passed.
  ///
  /// - Parameter device: its token.
  func variant(of device: @autoclosure () -> String, _ locale: String?) -> Name {
    let variant = chain.variant(of: device(), locale)
    // All that were not called for get the same, but for texts in their language.
    return "\(chain.texts(locale))\n\(variant.flatMap { runs?[$0] == nil ? nil : $0 } ?? "")"
  }

  /// Whether it has to be found out again who is shown the notification.
  func isOutdated(at now: UInt64) -> Bool { isGuess && now > time + 1_000 }

  /// What it holds, about: the payload, and the tree that it was made of.
  var bytes: Int { (runs ?? [:]).values.reduce(Self.bytes(of: run)) { $0 + Self.bytes(of: $1) } }

  private static func bytes(of run: ExtensionRun) -> Int { 256 + 4 * (run.written?.payload.count ?? 0) }
}

extension ExtensionFailure {
  static let settled = ExtensionFailure("it was not called: nobody was going to be shown the notification")
  fileprivate static let unknown = ExtensionFailure("it was not called: the device was not known yet, or there were too many")
}
