import Extensions
import Notifications

/// The results of the slow extensions for a request. They are kept while the request is in flight, so that a retry calls none again.
final class CalledExtensions {
  /// The extensions of the file that was in force at that time.
  let chain: ExtensionChain
  /// The result of the extensions that are called once for a request.
  let run: ExtensionRun
  /// The results of all extensions for each variant; nil if they are not called yet.
  private let runs: VariantPassages.Runs?
  /// The extensions were not called, since no device would show the notification. That may change.
  let isGuess: Bool
  /// When that was, in the loop's milliseconds.
  private let time: UInt64

  init(
    _ chain: ExtensionChain, _ run: ExtensionRun, _ runs: VariantPassages.Runs? = [:], at time: UInt64, isGuess: Bool = false
  ) {
    (self.chain, self.run, self.runs, self.time, self.isGuess) = (chain, run, runs, time, isGuess)
  }

  /// The result for a device. Extensions that were not called for it are noted as such.
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

  /// Whether all extensions were called.
  var isComplete: Bool { runs != nil }

  /// A name that is equal for devices that get the same content.
  ///
  /// - Parameter device: its token.
  func variant(of device: @autoclosure () -> String, _ locale: String?) -> Name {
    let variant = chain.variant(of: device(), locale)
    // Devices without a call of their own get the same, except for texts in their language.
    return "\(chain.texts(locale))\n\(variant.flatMap { runs?[$0] == nil ? nil : $0 } ?? "")"
  }

  /// Whether to look again which devices would show the notification.
  func isOutdated(at now: UInt64) -> Bool { isGuess && now > time + 1_000 }

  /// About how many bytes the results hold: payloads, and the trees that they were made from.
  var bytes: Int { (runs ?? [:]).values.reduce(Self.bytes(of: run)) { $0 + Self.bytes(of: $1) } }

  private static func bytes(of run: ExtensionRun) -> Int { 256 + 4 * (run.written?.payload.count ?? 0) }
}

extension ExtensionFailure {
  static let settled = ExtensionFailure("it was not called: nobody was going to be shown the notification")
  fileprivate static let unknown = ExtensionFailure("it was not called: the device was not known yet, or there were too many")
}
