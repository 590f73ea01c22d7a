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
  static func now() -> Reading {
    let file = try? InputFile(path: "/proc/self/stat", givenAt: "the process", limit: 4096)
    return file.map { reading(of: String(decoding: $0.bytes, as: UTF8.self)) } ?? Reading()
  }

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

  /// The number of open descriptors.
  static var openDescriptors: Double {
    // One of them is the folder's own. If no descriptor is left to read the number, it is the maximum. Then the number matters most.
    do throws(FolderNames.ReadError) { return try FolderNames.read("/proc/self/fd").map { Double($0.count - 1) } ?? .nan } catch {
      return error.reason == EMFILE ? maximumDescriptors : .nan
    }
  }

  /// The limit of open descriptors.
  static var maximumDescriptors: Double {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(UInt32(RLIMIT_NOFILE.rawValue)), &limit) == 0 else { return .nan }
    return Double(limit.rlim_cur)
  }
}
