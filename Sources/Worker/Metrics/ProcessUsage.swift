import EventLoop
import Glibc

/// The process' use of its machine, from Linux' `/proc/self`. An unreadable number is `nan`, as in Prometheus' own clients.
enum ProcessUsage {
  /// The numbers of `/proc/self/stat`.
  struct Reading {
    var processorSeconds = Double.nan
    var virtualBytes = Double.nan
    var residentBytes = Double.nan
  }

  /// The present numbers.
  static func now() -> Reading { stat().map(reading) ?? Reading() }

  /// Reads the text of a `stat` of `/proc`. Its second field, the name in parentheses, may contain anything.
  static func reading(of stat: String) -> Reading {
    let fields = stat[(stat.lastIndex(of: ")") ?? stat.startIndex)...].split(separator: " ").dropFirst()
    // The first of these is the third of proc(5).
    func field(_ number: Int) -> Double {
      let index = fields.startIndex + number - 3
      return fields.indices.contains(index) ? Double(fields[index]) ?? .nan : .nan
    }
    return Reading(
      processorSeconds: (field(14) + field(15)) / Double(sysconf(Int32(_SC_CLK_TCK))), virtualBytes: field(23),
      residentBytes: field(24) * Double(sysconf(Int32(_SC_PAGESIZE))))
  }

  private static func stat() -> String? {
    let descriptor = open("/proc/self/stat", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return Descriptor.readAll(descriptor, limit: 4096).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The number of open descriptors.
  static var openDescriptors: Double {
    guard let folder = opendir("/proc/self/fd") else {
      // If no descriptor is left to read the number, it is the maximum. Then the number matters most.
      return errno == EMFILE ? maximumDescriptors : .nan
    }
    defer { closedir(folder) }
    var count = 0.0
    while let entry = readdir(folder) { if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 } }
    // One of them is the folder's own.
    return count - 1
  }

  /// The limit of open descriptors.
  static var maximumDescriptors: Double {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(UInt32(RLIMIT_NOFILE.rawValue)), &limit) == 0 else { return .nan }
    return Double(limit.rlim_cur)
  }
}
