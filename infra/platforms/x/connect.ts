import type { ConsentConnector, FinishedConsent, RefusedConnect } from '#contracts/ports/connector.ts';
import type { NewCredential } from '#contracts/ports/credentials.ts';
import { nobody } from '../shared/findings.ts';
import { textIn } from '../shared/members.ts';
import { billed, type Counting, readsOfPerson } from './billed.ts';
import { authorizeUrl, exchangeCode, lookUpAccount, newVerifier, type OAuthOptions, revokeTokens } from './oauth.ts';

/** Connects the account whose owner allows it on X's own page. A login of X has one account. */

const refused = (words: string, operator?: string): RefusedConnect => ({
  kind: 'refused',
  words,
  ...(operator === undefined ? {} : { operator }),
});
const later = 'X does not answer now. Try again in a few minutes.';
const again = 'X no longer takes this answer: it is valid for half a minute. Start again.';

/** Errors of RFC 6749 that are about our app, not about the guest. */
const ofApp = ['unauthorized_client', 'invalid_client', 'invalid_scope', 'unsupported_response_type'];
const refusesApp = (error: string, reason: string): RefusedConnect =>
  refused(later, `X refuses our app: ${error}: ${reason}`);

/** Without these nothing can be published, or only for two hours. */
const needed: Readonly<Record<string, string>> = {
  'tweet.read': 'reading your posts',
  'tweet.write': 'posting for you',
  'users.read': 'reading your profile',
  'offline.access': 'staying connected',
};

/** The answer with an error has no code (RFC 6749, 4.1.2.1). */
const whyNoCode = (answer: ReadonlyMap<string, string>): RefusedConnect => {
  const error = answer.get('error');
  if (error === 'access_denied') return refused('You did not allow the access. Start again to allow it.');
  if (error !== undefined && ofApp.includes(error)) {
    return refusesApp(error, answer.get('error_description') ?? 'on its page of consent');
  }
  return refused(later);
};

export const xConsent = (options: OAuthOptions & Counting): ConsentConnector => {
  /** The consent of an account that is not connected must not stay alive at X. */
  const unwanted = async (credential: NewCredential, why: RefusedConnect, signal: AbortSignal) => {
    await revokeTokens(options, credential, nobody, signal);
    return why;
  };
  const finish = async (asked: Parameters<typeof exchangeCode>[1], workspaceId: string, signal: AbortSignal) => {
    const exchanged = await exchangeCode(options, asked, signal);
    if (exchanged.kind === 'unavailable') return refused(later);
    if (exchanged.kind === 'refused') {
      const { error, reason } = exchanged;
      return ofApp.includes(error) ? refusesApp(error, reason) : refused(again);
    }
    const { credential, scopes } = exchanged;
    const missing = Object.entries(needed).flatMap(([scope, words]) => (scopes.includes(scope) ? [] : [words]));
    if (missing.length > 0) {
      const words = `X gave us no permission for ${missing.join(', ')}. Start again.`;
      return unwanted(credential, refused(words), signal);
    }
    const found = await billed(
      options,
      { workspaceId, reads: readsOfPerson, isOptional: false },
      () => lookUpAccount(options, String(credential.secret.accessToken), signal),
      ({ kind }) => (kind === 'refused' ? 0 : readsOfPerson),
    );
    if (found.kind === 'spent') {
      return unwanted(credential, refused(later, `X was not asked whose account it is: ${found.reason}`), signal);
    }
    if (found.kind === 'unavailable') return unwanted(credential, refused(later), signal);
    if (found.kind === 'refused') {
      const words =
        found.status === 401 ? again : 'X does not let us read this account. Is it locked or suspended? Start again.';
      return unwanted(credential, refused(words), signal);
    }
    const { externalId, username, displayName, avatarUrl } = found.profile;
    const profile = { externalId, username, displayName, avatarUrl, scopes, consentEndsAt: null };
    return { kind: 'accounts', accounts: [{ profile, credential }] } satisfies FinishedConsent;
  };
  return {
    kind: 'consent',
    title: 'By signing in there',
    // X asks who it is.
    usernameLabel: null,
    begin: async ({ redirectUri, state }) => {
      const verifier = newVerifier();
      return { kind: 'begun', url: authorizeUrl(options, { redirectUri, state, verifier }), kept: { verifier } };
    },
    finish: async ({ answer, kept, redirectUri, workspaceId }, signal) => {
      const code = answer.get('code') ?? '';
      const verifier = textIn(kept, 'verifier') ?? '';
      return code === '' ? whyNoCode(answer) : finish({ code, verifier, redirectUri }, workspaceId, signal);
    },
  };
};
