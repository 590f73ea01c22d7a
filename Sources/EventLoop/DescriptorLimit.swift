import Glibc

/// The process' limit of open descriptors: every connection takes one.
public enum DescriptorLimit {
  /// Raises the limit as far as the system allows, and returns it; the largest number if unknown.
  @discardableResult
  public static func raise() -> Int {
    var limit = rlimit()
    let resource = __rlimit_resource_t(UInt32(RLIMIT_NOFILE.rawValue))
    guard getrlimit(resource, &limit) == 0 else { return .max }
    if limit.rlim_cur < limit.rlim_max {
      limit.rlim_cur = limit.rlim_max
      setrlimit(resource, &limit)
      getrlimit(resource, &limit)
    }
    return Int(clamping: limit.rlim_cur)
  }
}
