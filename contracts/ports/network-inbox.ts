/** Calls that a network makes by itself. Each is signed, in a form of the network's own. */

/** A request to the address of a network, as it came. */
export interface InboundCall {
  readonly method: 'GET' | 'POST';
  /** What of the path lies behind the network's name: `delete`. Null: nothing. */
  readonly topic: string | null;
  /** Of a name that comes twice the first counts, as of headers. */
  readonly query: Readonly<Record<string, string>>;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** At most `maxInboundBytes`. */
  readonly body: Buffer;
}

/** The largest that a network is known to send is a tenth of it. */
export const maxInboundBytes = 65_536;

/** What one call may say: what lies behind is dropped. */
export const maxNotices = 100;

/**
 * `person`: an account by its external id, or whose consent it was, as the `grant` of a credential has it. `at`: ISO 8601, when
 * it happened by the network's clock, which may be ahead; where the network says whole seconds, the end of that second.
 */
export type NetworkNotice =
  /** The person took back what they had allowed, or the network ended it. */
  | { readonly kind: 'deauthorized'; readonly person: string; readonly at: string }
  /** The person asks us to delete what we have of them, and the network gives them the address of the confirmation. */
  | { readonly kind: 'delete_data'; readonly person: string; readonly at: string }
  /** Something happened to a post of the account. It proves nothing: the network is asked. */
  | { readonly kind: 'post_state'; readonly person: string };

export type InboundVerdict =
  /** It is not the network's, or of no use. `reason`: for our log alone, without anything that the caller sent. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** The network asks whether we are there; the answer as JSON. */
  | { readonly kind: 'answered'; readonly body: string }
  /** None: the network says something that is nothing to us. */
  | { readonly kind: 'noticed'; readonly notices: readonly NetworkNotice[] };

export interface NetworkInbox {
  /**
   * Says whether the network made the call, and what it says. A call that comes again says the same. Never throws, whatever the
   * call holds.
   * @param now milliseconds since the epoch
   */
  verify(call: InboundCall, now: number): InboundVerdict;
}
