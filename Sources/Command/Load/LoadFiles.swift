import EventLoop
import Glibc
import JSON
import Operations
import Worker

/// The files of a run's report. They are made when the run begins, so that a wrong path does not cost a run.
struct LoadFiles: Sendable {
  private typealias Target = (descriptor: Int32, name: String)

  private let page: Target?
  private let numbers: Target?

  init(_ values: SettingValues) throws(Failure) {
    page = try Self.open(values, LoadSettings.report)
    numbers = try Self.open(values, LoadSettings.result)
  }

  private static func open(_ values: SettingValues, _ setting: Setting<String?>) throws(Failure) -> Target? {
    guard let path = values[setting] else { return nil }
    let name = values.name(of: setting)
    // To open a FIFO would wait for its reader for ever.
    let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0o644)
    guard descriptor >= 0 else {
      let reason = errno == ENXIO ? "it is a FIFO that nobody reads" : String(cString: strerror(errno))
      throw Failure(.wrongUsage, "\(name): \(path) cannot be written: \(reason)")
    }
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
    return (descriptor, name)
  }

  /// Writes the report.
  ///
  /// - Throws: all failures in one. A file that cannot be written does not cost the other one.
  func write(_ report: LoadReport) throws(Failure) {
    let failures = [Self.write(page, LoadPage.html(report)), Self.write(numbers, report.json.text + "\n")].compactMap { $0 }
    guard failures.isEmpty else { throw Failure(.dependencyMissing, failures.joined(separator: "; ")) }
  }

  /// Writes a file; answers why it cannot.
  private static func write(_ target: Target?, _ text: String) -> String? {
    guard let target else { return nil }
    var text = text
    let isComplete = text.withUTF8 { Descriptor.write(UnsafeRawBufferPointer($0), to: target.descriptor) == $0.count }
    // Some file systems report a full disk only now.
    guard isComplete, close(target.descriptor) == 0 else {
      return "\(target.name): the report cannot be written: \(String(cString: strerror(errno)))"
    }
    return nil
  }
}
