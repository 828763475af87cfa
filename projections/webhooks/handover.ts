/** How the dispatcher hands what it has minted to a sender of the same thread, without asking the database again. */

/** A delivery whose attempt was begun, in the database, by or for the sender that has this. */
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
  /** Failures recorded before it. */
  readonly tries: number;
  readonly trigger: 'scheduled' | 'test' | 'resend' | 'replay';
  /** Monotonic milliseconds (`performance.now()`), counted from before the lease was written. */
  readonly leaseEnds: number;
}

export interface Handover {
  /** How long a minted row stays leased, milliseconds. */
  readonly leaseMs: number;
  /**
   * How many first tries to this endpoint may begin now, at most `wanted`. They are kept free until each was taken or
   * given back. 0 when the endpoint is off, waits behind its breaker, or has as many under way as it may.
   */
  reserve(endpointId: string, workspaceId: string, wanted: number): number;
  /** Gives back what was reserved and not used. */
  giveBack(endpointId: string, workspaceId: string, count: number): void;
  /** Sends them. Called after the commit; uses up one reserved place each. */
  take(deliveries: readonly Leased[]): void;
  /** Endpoints were changed, or rows queued for whoever has room: looks at the tables soon. */
  wake(): void;
}

/** For a dispatcher without a sender in its thread: every row is queued for whoever comes. */
export const nobody: Handover = {
  leaseMs: 0,
  reserve: () => 0,
  giveBack: () => undefined,
  take: () => undefined,
  wake: () => undefined,
};
