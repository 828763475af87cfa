import type { NetworkInbox, NetworkNotice } from '#contracts/ports/network-inbox.ts';
import { integerIn, parsed, textIn } from '../shared/members.ts';
import { endOfSecond, isSigned, personIn, refused } from './signed.ts';

/**
 * Calls of Facebook, Instagram and Threads: a form with one field, `signed_request`. What is signed says neither for which of
 * the two addresses it is nor what is asked, so an app gives each its own.
 * Source: "Data Deletion Request Callback" of Meta's App Dashboard, read on 2026-11-29.
 */

const kinds: Readonly<Record<string, Exclude<NetworkNotice['kind'], 'post_state'>>> = {
  deauthorize: 'deauthorized',
  delete: 'delete_data',
};

/** Milliseconds. A longer delay is none of Meta's, and its clock is not further ahead. */
const [oldestMs, aheadMs] = [7 * 86_400_000, 300_000];

/** @param secret of the app */
export const metaInbox = (secret: string): NetworkInbox => ({
  verify({ method, topic, body }, now) {
    const kind = method === 'POST' && topic !== null && Object.hasOwn(kinds, topic) ? kinds[topic] : undefined;
    if (kind === undefined) return refused('Meta calls deauthorize and delete alone');
    const signed = new URLSearchParams(body.toString('utf8')).get('signed_request') ?? '';
    const [signature = '', payload = '', ...rest] = signed.split('.');
    if (rest.length > 0 || !isSigned(Buffer.from(signature, 'base64url'), secret, payload)) {
      return refused('the app secret did not sign it');
    }
    const said = parsed(Buffer.from(payload, 'base64url')) ?? {};
    if (textIn(said, 'algorithm')?.toUpperCase() !== 'HMAC-SHA256') return refused('it names another algorithm');
    const person = personIn(said, 'user_id');
    const issued = integerIn(said, 'issued_at');
    const age = issued === null ? Number.NaN : now - issued * 1_000;
    if (age > oldestMs || age < -aheadMs) return refused('it is too old, or of a time to come');
    const at = endOfSecond(issued);
    if (person === null || at === null) return refused('it does not say who, or when');
    return { kind: 'noticed', notices: [{ kind, person, at }] };
  },
});
