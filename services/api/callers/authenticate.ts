import { within } from '#contracts/base/within.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import type { Allowances } from '../call/allowances.ts';
import type { CallPatience } from '../call/deps.ts';
import type { Principal } from '../call/operation.ts';
import { Refusal } from '../call/refusal.ts';
import type { ToldLimits } from '../call/wire.ts';
import type { BearerTokens, Resource } from './bearer-tokens.ts';

/** A request that may carry a token. */
export interface Authenticating {
  /** Learns what is left of the guesses of the address. */
  readonly told: ToldLimits;
  /** The header; empty: none was sent. */
  readonly authorization: string;
  readonly address: string;
  readonly resource: Resource;
}

/** @throws Refusal 401, or 429 where the address has no guesses left */
export type Authenticate = (request: Authenticating) => Promise<Principal>;

/**
 * Finds the owner of a bearer token. A token that fails costs its address a guess. For an address without guesses left,
 * the server looks up no token that is new to this process, so that a stranger's flood causes no queries. Known keys, and
 * tokens with a valid signature, still pass, so that a stranger at the same address cannot lock them out.
 */
export const authenticator =
  (tokens: BearerTokens, { guesses }: Allowances, { tokenMs }: CallPatience): Authenticate =>
  async ({ told, authorization, address, resource }) => {
    const sent = bearer(authorization);
    const isCheap = sent !== null && tokens.isCheap(sent);
    if (!isCheap && !(await guesses.hasLeft(address))) {
      if (sent !== null) tokens.lookUpLater(sent, address);
      await guesses.spend(told, address, 1);
    }
    try {
      if (sent === null) throw new Refusal('missing_token', 'Send the header Authorization: Bearer <token>.');
      return await within(tokenMs, tokens.identify(sent, resource), tooLate);
    } catch (error) {
      // While the database is unavailable, nobody knows whether the token is valid: the address loses no guess.
      if (error instanceof Refusal) await guesses.spend(told, address, 1);
      throw error;
    }
  };

const tooLate = (): never => {
  throw new Unavailable('The database did not return the owner of the token in time.');
};

const bearer = (header: string): string | null => /^Bearer +(\S+) *$/i.exec(header)?.[1] ?? null;
