/// The profiles that ship, as files whose keys are the flags of `carillon load`.
enum LoadProfile {
  /// Their texts, by their names.
  static let shipped = ["smoke": smoke, "mixed": mixed, "storm": storm]

  private static let smoke = """
    # A few seconds that use each kind of request.
    devices = 20
    rate = 20
    duration = 10s
    sizes = 200,1000
    collapsing = 0.2
    duplicate = 0.05
    mutable = 0.1
    scheduled = 0.1
    schedule-ahead = 3s
    respond = 0.05
    patience = 30s
    """

  private static let mixed = """
    # An ordinary afternoon: some devices are slow, some come and go.
    devices = 2000
    connect-rate = 200
    churn = 0.05
    slow = 0.02
    rate = 500
    ramp = 10s
    duration = 2m
    sizes = 200,600,2500
    collapsing = 0.2
    duplicate = 0.01
    mutable = 0.1
    scheduled = 0.02
    schedule-ahead = 30s
    respond = 0.02
    """

  private static let storm = """
    # Half of the devices reconnect at once, in the middle of the run.
    devices = 2000
    connect-rate = 1000
    storm = 0.5
    rate = 200
    duration = 1m
    sizes = 300
    collapsing = 0.1
    """
}
