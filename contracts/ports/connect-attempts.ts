/**
 * What we remember of a guest who is connecting an account, from one request of their browser to the next: who may go on,
 * and what the connector gave us to keep. It may be secret (a verifier, a key, tokens of accounts that nobody has chosen
 * yet), so it is sealed under the data key of the client, and ends after some minutes.
 */
import type { Platform } from '#schemas/common.ts';

/** What the guest comes back with: the network's answer, their choice among several accounts, or a code they posted. */
export type AttemptKind = 'consent' | 'choice' | 'code';

export interface ConnectAttempt {
  readonly kind: AttemptKind;
  readonly inviteId: string;
  readonly workspaceId: string;
  readonly clientId: string;
  readonly platform: Platform;
  /** JSON, at most 512 KiB. */
  readonly kept: Readonly<Record<string, unknown>>;
}

/** Both are secret, and the store keeps only their hashes. */
export interface AttemptBearer {
  /** Names the attempt. */
  readonly token: string;
  /** Of the browser that began: with another one, the attempt is not found. */
  readonly browser: string;
}

export interface ConnectAttempts {
  /**
   * Durable when it resolves. An invite has at most `maxAttempts` of them: the oldest goes. False: the client was erased.
   * @throws Error when what is kept is too long
   */
  keep(bearer: AttemptBearer, attempt: ConnectAttempt): Promise<boolean>;
  /** Null: there is none of this kind, it has ended, or another browser began it. @throws MissingKey */
  find(bearer: AttemptBearer, kind: AttemptKind): Promise<ConnectAttempt | null>;
  /** Like `find`, and ends it: of several callers, one gets it. */
  take(bearer: AttemptBearer, kind: AttemptKind): Promise<ConnectAttempt | null>;
  /** Deletes some of those that have ended by time; answers how many. */
  sweep(): Promise<number>;
  /** A repeat does no harm. */
  destroyOfClient(clientId: string): Promise<void>;
}

/** Milliseconds that a guest has, from one step to the next. */
export const attemptMs = 15 * 60_000;

/** Of one invite. */
export const maxAttempts = 50;
