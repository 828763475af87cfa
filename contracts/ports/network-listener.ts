/** A network that sends updates only to a listener. One process listens at a time; two do no harm. */
import type { Credential } from './credentials.ts';

export type HearingState =
  | { readonly kind: 'hearing' }
  /** No answer, or not now: the listener asks again by itself. */
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** Somebody else listens in our place. Only the operator can mend it; the listener asks again by itself. */
  | { readonly kind: 'conflict'; readonly reason: string }
  /** The network does not take what the configuration gives. Only the operator can mend it; `listen` ends. */
  | { readonly kind: 'refused'; readonly reason: string };

/** Why the listener can no longer act for an account, in words for its owner. Null: it can. Undefined: not known now. */
export type LossCheck = () => Promise<string | null | undefined>;

/** What the listener asks and tells. Each of these is durable when it resolves, and a repeat does no harm. */
export interface Hearer {
  /** Those of these external ids that are of connected accounts. */
  connected(externalIds: readonly string[]): Promise<ReadonlySet<string>>;
  /**
   * The network reported a change that may have cost us the accounts with this external id.
   * @param check asks the network as it is now
   * @returns false: it is not known now, and the network must report the change again
   */
  changed(externalId: string, check: LossCheck): Promise<boolean>;
  /** Called for each answer of the network, and each that it did not give. */
  state(state: HearingState): void;
}

export interface NetworkListener {
  /** Without secrets: the listening process holds the lease of this name. */
  readonly name: string;
  /** Whether this is a credential for which the network tells us things. */
  concerns(credential: Credential): boolean;
  /**
   * Listens until the signal, or until the network refuses what the configuration gives.
   * @throws what the hearer throws: the network repeats an unstored update to the next listener
   */
  listen(hearer: Hearer, signal: AbortSignal): Promise<void>;
}
