/// The protocol between devices and the cluster.
public enum DeviceProtocol {
  /// The WebSocket subprotocol.
  public static var subprotocol: String { "carillon.v1" }
  /// The path of the WebSocket.
  public static var path: String { "/v1/device" }
}
