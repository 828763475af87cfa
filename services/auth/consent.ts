import type { Secrets } from '#runtime/identity/secrets.ts';
import type { Mode } from '#schemas/common.ts';

/**
 * What a person decided about an app on the console's consent page, on its way to the authorization server. It travels
 * through the browser that holds the cookie of the authorization, is bound to that authorization, and lives a minute: a
 * result that was made for another browser, or for another authorization, opens nothing.
 */

export interface ConsentResult {
  /** Of the authorization that is answered. */
  readonly uid: string;
  readonly decision: 'allow' | 'deny';
  readonly personId: string;
  readonly memberId: string;
  /** The live workspace, whichever mode was chosen. */
  readonly workspaceId: string;
  readonly mode: Mode;
  /** Of the person at the decision: what began before a new password, or a proof of the address, gives nothing after it. */
  readonly era: number;
  /** What is left of the requested scopes. */
  readonly scopes: readonly string[];
}

const consentMs = 60_000;

interface Sealed extends ConsentResult {
  /** Milliseconds since the epoch. */
  readonly until: number;
}

/** @param now milliseconds since the epoch */
export const sealConsent = (secrets: Secrets, result: ConsentResult, now: number): string => {
  const sealed: Sealed = { ...result, until: now + consentMs };
  return secrets.seal('consents', JSON.stringify(sealed));
};

/** Null where we did not seal it, it is too old, or it was made for another authorization. */
export const openConsent = (secrets: Secrets, text: string, uid: string, now: number): ConsentResult | null => {
  const payload = secrets.open('consents', text);
  if (payload === null) return null;
  const { until, ...result } = JSON.parse(payload) as Sealed;
  return result.uid === uid && now < until ? result : null;
};
