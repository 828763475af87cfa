/** How the dispatcher hands minted deliveries to a sender of the same thread, without another query. */

/** A delivery whose attempt has begun in the database, on behalf of the sender that holds this. */
export interface Leased {
  readonly deliveryId: string;
  /** `created` of the envelope, ISO 8601: with the id it is the delivery's key. */
  readonly eventTime: string;
  readonly endpointId: string;
  readonly workspaceId: string;
  /** Envelope id = webhook-id. */
  readonly messageId: string;
  /** The exact bytes to send. */
  readonly body: Buffer;
  /** Commit position of the event and `<topic>-<partition>`, for the consistency token. */
  readonly position: bigint;
  readonly lane: string;
  /** Number of this attempt, from 1: X-Service-Attempt, and the fence of its record. */
  readonly attempt: number;
  /** Failures recorded before this attempt. */
  readonly tries: number;
  readonly trigger: 'scheduled' | 'test' | 'resend' | 'replay';
  /** Monotonic milliseconds (`performance.now()`), counted from before the lease was written. */
  readonly leaseEnds: number;
}

export interface Handover {
  /** How long a minted row stays leased, milliseconds. */
  readonly leaseMs: number;
  /**
   * Reserves slots for first attempts to this endpoint, at most `wanted`, and returns how many. They stay reserved
   * until each is used or given back. 0 when the endpoint is off, waits behind its breaker, or has no free slot.
   */
  reserve(endpointId: string, workspaceId: string, wanted: number): number;
  /** Gives back reserved slots that are not used. */
  giveBack(endpointId: string, workspaceId: string, count: number): void;
  /** Sends the deliveries. Called after the commit; each uses one reserved slot. */
  send(deliveries: readonly Leased[]): void;
  /** Endpoints changed, or rows were queued without a slot: the sender queries the tables soon. */
  wake(): void;
}
