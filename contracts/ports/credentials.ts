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

export interface NewCredential extends Omit<Credential, 'version'> {
  /**
   * Whose consent it is, as the network names it, where a revocation ends every account of that consent: a person of Meta or
   * Google. Absent: it is this account's alone. A refresh leaves it as it is.
   */
  readonly grant?: string;
}

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
  /**
   * No answer, or not now. The next call tries again. `isSilent`: the request may have reached the network, whose answer
   * did not come whole; it may have replaced the pair, so a later refusal counts as an answer that was lost.
   */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly isSilent?: true };

/** Asks the network once. `owner`: whose credential it is, as a call names its subject. */
export type Refresher = (former: Credential, signal: AbortSignal, owner: CredentialOwner) => Promise<Refresh>;

/** Asks the network once to take back what it gave; `revoked` also where it no longer knows it. */
export type Revoker = (
  credential: Credential,
  accountId: string,
  signal: AbortSignal,
) => Promise<'revoked' | 'unavailable'>;

export type Refreshed =
  | { readonly kind: 'current'; readonly credential: Credential }
  /**
   * The account lapsed; until the next consent every refresh answers this without a call. `isLost`: an earlier refresh
   * may have been answered with a pair that we never stored, which explains the refusal. `reason`: words for the owner,
   * which say when an answer was lost; at most 500 characters.
   */
  | { readonly kind: 'lapsed'; readonly version: number; readonly reason: string; readonly isLost: boolean }
  | { readonly kind: 'unavailable'; readonly reason: string }
  | { readonly kind: 'missing' };

/** An account whose credential ends soon. */
export interface EndingCredential {
  readonly owner: CredentialOwner;
  readonly version: number;
  readonly expiresAt: string;
}

/** A reason that an adapter gives may repeat what it sent: the store takes members of the secret out of it. */
export interface CredentialStore {
  /**
   * Keeps what a consent gave; durable when it resolves. It replaces the former one, and a refresh that is under way
   * then is not stored. Null: the client was erased. NOTE: keep it before the event of the consent, or the lapse of
   * the former credential may be recorded behind that event.
   */
  keep(owner: CredentialOwner, credential: NewCredential): Promise<number | null>;
  /** Null: there is none, or its client was erased. @throws MissingKey */
  read(accountId: string): Promise<Credential | null>;
  /**
   * Refreshes a credential, one process at a time for each account: a second caller waits and gets what the first
   * one got. The new credential is durable when it resolves, so it is never used before.
   * @param seen the version that the caller found wanting: another one is answered at once
   * @param ask calls the network once, within the signal it is given
   * @param signal ends a wait at once. A call that is under way gets some seconds more, because an answer that nobody
   *   receives costs the owner a new consent
   * @throws the database's error, when it does not answer for as long as the refresh may last; MissingKey; what `ask`
   *   throws
   */
  refresh(
    accountId: string,
    seen: number,
    ask: (former: Credential, signal: AbortSignal) => Promise<Refresh>,
    signal: AbortSignal,
  ): Promise<Refreshed>;
  /** Final. A repeat does no harm. @param version only this one: a consent since then keeps what it gave */
  destroy(accountId: string, version?: number): Promise<void>;
  /**
   * Destroys this version where another account of the network is kept by the same grant, on Facebook and Instagram one of either:
   * the network is asked with the last of them alone. `left`: nothing is to be revoked, also where a consent since then keeps what it gave. `last`: nothing
   * was destroyed. Of those that leave one grant at once, one is the last.
   */
  leave(accountId: string, version: number): Promise<'left' | 'last'>;
  /** Destroys those of all accounts of a client whose data key was destroyed. A repeat does no harm. */
  destroyOfClient(clientId: string): Promise<void>;
  /**
   * Accounts of a network whose credentials end before this instant, at most `limit`: the earliest of each workspace
   * before the second of any. Leaves out those that are being refreshed, those whose last refresh was unavailable (for
   * a while, longer each time) and those whose lapse was acknowledged.
   */
  ending(platform: Platform, before: string, limit: number): Promise<readonly EndingCredential[]>;
  /** The lapse of this version is recorded in the account's stream: `ending` leaves it out. */
  acknowledgeLapse(accountId: string, version: number): Promise<void>;
}
