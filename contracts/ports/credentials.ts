/**
 * What networks gave us to act for accounts. A credential is in no event, log line, error or answer; it is sealed under
 * the data key of the account's client and ends with that key.
 */
import type { Platform } from '#schemas/common.ts';
import type { Json } from './platform.ts';

export interface Credential {
  /** From 1. Each refresh and each new consent makes the next. */
  readonly version: number;
  readonly secret: { readonly [name: string]: Json };
  /** ISO 8601, until which the network takes it; null: until somebody ends it. */
  readonly expiresAt: string | null;
}

export type NewCredential = Omit<Credential, 'version'>;

export interface CredentialOwner {
  readonly accountId: string;
  readonly workspaceId: string;
  readonly clientId: string;
  readonly platform: Platform;
}

/** What the network answered to a refresh. */
export type Refresh =
  /** A member that the network left out of `secret` (no new refresh token) keeps its former value. */
  | { readonly kind: 'refreshed'; readonly credential: NewCredential }
  /** The network refuses for good: only the account's owner can mend it. `reason`: the network's words. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** No answer, or not now. The next call tries again. */
  | { readonly kind: 'unavailable'; readonly reason: string };

export type Refreshed =
  | { readonly kind: 'current'; readonly credential: Credential }
  /**
   * The account lapsed. `isLost`: an earlier refresh may have been answered with a pair that we never stored, which
   * explains the refusal.
   */
  | { readonly kind: 'lapsed'; readonly reason: string; readonly isLost: boolean }
  | { readonly kind: 'unavailable'; readonly reason: string }
  | { readonly kind: 'missing' };

export interface CredentialStore {
  /**
   * Keeps what a consent gave; durable when it resolves. It replaces the former one, and a refresh that is under way
   * then is not stored. Null: the client was erased.
   */
  keep(owner: CredentialOwner, credential: NewCredential): Promise<number | null>;
  /** Null: there is none, or its client was erased. @throws MissingKey */
  read(accountId: string): Promise<Credential | null>;
  /**
   * Refreshes a credential, one process at a time for each account: whoever comes second waits and gets what the first
   * one got. The new credential is durable when it resolves, so it is never used before.
   * @param seen the version that the caller found wanting: a newer one is answered at once
   * @param ask calls the network once, within the signal
   */
  refresh(
    accountId: string,
    seen: number,
    ask: (former: Credential, signal: AbortSignal) => Promise<Refresh>,
    signal: AbortSignal,
  ): Promise<Refreshed>;
  /** Final. A repeat does no harm. */
  destroy(accountId: string): Promise<void>;
  /** Accounts whose credentials end before this instant, the earliest first, at most `limit`. */
  ending(
    before: string,
    limit: number,
  ): Promise<readonly { readonly owner: CredentialOwner; readonly expiresAt: string }[]>;
}
