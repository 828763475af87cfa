/** Keys that encrypt one client's personal members. Destroying the key is how a client is forgotten. */
export interface DataKeys {
  /** 32 bytes. Made and committed before it is first used. Null when the client's key was destroyed. */
  forWriting(clientId: string): Promise<Buffer | null>;
  /** Null when the key was destroyed. @throws when it is missing or cannot be unwrapped: that is a fault, never "null". */
  forReading(clientId: string): Promise<Buffer | null>;
}
