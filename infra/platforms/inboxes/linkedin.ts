import { maxNotices, type NetworkInbox } from '#contracts/ports/network-inbox.ts';
import { listIn, parsed } from '../shared/members.ts';
import { hexHmac, isSigned, personIn, refused } from './signed.ts';

/**
 * Calls of LinkedIn: a challenge, at first and every two hours, and what happened to posts of organizations. It says nothing of
 * consents, and nothing of members.
 * Source: "Webhooks" and "Organization Social Action Notifications" of LinkedIn's documentation, read on 2026-11-29.
 */

/** NOTE: other text is never signed: who asks for it would have a signature of ours for a call of LinkedIn. */
const challenge = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Stands before the body in what is signed, and may stand before the signature. */
const prefix = 'hmacsha256=';

/** @param secret of the app */
export const linkedinInbox = (secret: string): NetworkInbox => ({
  verify({ method, topic, query, headers, body }) {
    if (topic !== null) return refused('LinkedIn calls one address');
    if (method === 'GET') {
      const { challengeCode = '' } = query;
      if (!challenge.test(challengeCode)) return refused('it holds no challenge');
      return {
        kind: 'answered',
        body: JSON.stringify({ challengeCode, challengeResponse: hexHmac(secret, challengeCode) }),
      };
    }
    const text = headers['x-li-signature'] ?? '';
    const given = Buffer.from(text.startsWith(prefix) ? text.slice(prefix.length) : text, 'hex');
    // Its documentation signs the prefix with the body, its samples the body alone; no challenge has the form of either.
    if (!isSigned(given, secret, prefix, body) && !isSigned(given, secret, body)) {
      return refused('the client secret did not sign it');
    }
    const accounts = listIn(parsed(body) ?? {}, 'notifications').flatMap(
      (one) => personIn(one, 'organizationalEntity') ?? [],
    );
    const notices = [...new Set(accounts)]
      .slice(0, maxNotices)
      .map((person) => ({ kind: 'post_state', person }) as const);
    return { kind: 'noticed', notices };
  },
});
