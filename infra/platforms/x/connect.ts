import type { Connected } from '#contracts/ports/connector.ts';
import { exchangeCode, lookUpAccount, type OAuthOptions } from './oauth.ts';

/** Connects an account by the code with which X sends its owner back to us. */

export type Callback =
  /** Of the redirect: `?code=…&state=…`. The caller has compared the state with that of the invite. */
  | { readonly code: string; readonly verifier: string; readonly redirectUri: string }
  /** `?error=…`: there is no code. */
  | { readonly error: string };

const refused = (words: string): Connected => ({ kind: 'refused', words });
const later = 'X does not answer now. Try again in a few minutes.';
const again = 'X no longer takes this answer: it is valid for half a minute. Start again.';
const ofOperator = 'X refuses our app. Tell the people who sent you the link: only they can mend it.';

/** Errors of RFC 6749 that are about our app, not about the guest. */
const ofApp = ['unauthorized_client', 'invalid_client', 'invalid_scope', 'unsupported_response_type'];

/** Without these nothing can be published, or only for two hours. */
const needed: Readonly<Record<string, string>> = {
  'tweet.read': 'reading your posts',
  'tweet.write': 'posting for you',
  'users.read': 'reading your profile',
  'offline.access': 'staying connected',
};

export const connectByCode = async (
  options: OAuthOptions,
  callback: Callback,
  signal: AbortSignal,
): Promise<Connected> => {
  if ('error' in callback) {
    if (callback.error === 'access_denied') return refused('You did not allow the access. Start again to allow it.');
    return refused(ofApp.includes(callback.error) ? ofOperator : later);
  }
  const exchanged = await exchangeCode(options, callback, signal);
  if (exchanged.kind === 'unavailable') return refused(later);
  if (exchanged.kind === 'refused') return refused(ofApp.includes(exchanged.error) ? ofOperator : again);
  const { credential, scopes } = exchanged;
  const missing = Object.entries(needed).flatMap(([scope, words]) => (scopes.includes(scope) ? [] : [words]));
  if (missing.length > 0) return refused(`X gave us no permission for ${missing.join(', ')}. Start again.`);
  const found = await lookUpAccount(options, String(credential.secret.accessToken), signal);
  if (found.kind === 'unavailable') return refused(later);
  if (found.kind === 'refused') {
    return refused(found.status === 401 ? again : 'X does not let us read this account. Is it locked or suspended?');
  }
  const { externalId, username, displayName, avatarUrl } = found.profile;
  return {
    kind: 'connected',
    credential,
    profile: { externalId, username, displayName, avatarUrl, scopes, consentEndsAt: null },
  };
};
