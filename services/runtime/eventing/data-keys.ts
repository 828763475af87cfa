/** Keys that encrypt one client's personal members. Destroying a client's key erases the client. */
export interface DataKeys {
  /** 32 bytes. Created and committed before the first use. Null when the client's key was destroyed. */
  forWriting(clientId: string): Promise<Buffer | null>;
  /**
   * Null when the key was destroyed. @throws when it is missing or cannot be unwrapped: that is a fault, never "null"
   */
  forReading(clientId: string): Promise<Buffer | null>;
}
