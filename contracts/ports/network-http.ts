/**
 * The one way by which adapters call a network: one request over HTTP, sent once, without a retry, within the guard for
 * outgoing calls. The implementation reports each call.
 */

/** A part of a file on this machine, read while it is sent. */
export interface FileSlice {
  readonly path: string;
  /** Bytes from the beginning of the file. */
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
  /** Sent as this text of the bytes, of a third more. Absent: as they are. */
  readonly as?: 'base64';
}

export interface NetworkCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With the query. */
  readonly url: string;
  /** Lower-case names; without `host` and `content-length`. */
  readonly headers: Readonly<Record<string, string>>;
  /** One body in pieces, which are sent in their order; none: no body. */
  readonly body: readonly (Buffer | FileSlice)[];
  readonly subject: {
    readonly accountId: string;
    /** Null: the call belongs to no target. */
    readonly targetId: string | null;
  };
  /** Path as it may be written down, where the path itself is secret (Telegram's has the token). */
  readonly shownPath?: string;
  /** Body and answer hold credentials: nothing of either may be written down. */
  readonly isSecret?: true;
  /** Reports bytes of the body that went out. */
  readonly onSent?: (bytes: number) => void;
}

export type NetworkResult =
  | {
      readonly kind: 'answered';
      readonly status: number;
      /** The first of each, by lower-case name. */
      readonly headers: Readonly<Record<string, string>>;
      /** At most 1 MiB: a longer body is `silent` with the reason `answer_too_long`. */
      readonly body: Buffer;
    }
  /** Provably nothing of the request reached the network: no such host, refused, not allowed, TLS failed. */
  | { readonly kind: 'unsent'; readonly reason: string }
  /** Something may have reached it, and no whole answer came: the effect is unknown. */
  | { readonly kind: 'silent'; readonly reason: string };

export interface NetworkHttp {
  /**
   * Ends at the signal at the latest, with `unsent` or `silent`: it never throws for a network, a time or a signal.
   */
  send(call: NetworkCall, signal: AbortSignal): Promise<NetworkResult>;
}
