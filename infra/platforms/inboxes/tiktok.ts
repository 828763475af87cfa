import type { NetworkInbox, NetworkNotice } from '#contracts/ports/network-inbox.ts';
import { integerIn, parsed, textIn } from '../shared/members.ts';
import { endOfSecond, isSigned, personIn, refused } from './signed.ts';

/**
 * Calls of TikTok: JSON, whose signature is in a header with the time at which it was made. One address for each app.
 * Source: "Webhooks" and "Webhooks Verification" of TikTok for Developers, read on 2026-11-22.
 */

/** Seconds between the signature and now. A call that TikTok repeats has a new one. */
const freshSeconds = 300;

interface App {
  readonly clientKey: string;
  readonly secret: string;
}

/** `t=1795500100,s=5257a8…` */
const signatureIn = (header: string): { readonly time: string; readonly signature: Buffer } => {
  const members = new Map(header.split(',').map((one) => [one.slice(0, 2), one.slice(2)]));
  return { time: members.get('t=') ?? '', signature: Buffer.from(members.get('s=') ?? '', 'hex') };
};

export const tiktokInbox = ({ clientKey, secret }: App): NetworkInbox => ({
  verify({ method, topic, headers, body }, now) {
    if (method !== 'POST' || topic !== null) return refused('TikTok posts to one address');
    const { time, signature } = signatureIn(headers['tiktok-signature'] ?? '');
    if (!isSigned(signature, secret, `${time}.`, body)) return refused('the client secret did not sign it');
    if (!(/^\d{1,12}$/.test(time) && Math.abs(now / 1_000 - Number(time)) <= freshSeconds)) {
      return refused('the signature is too old, or of a time to come');
    }
    const said = parsed(body);
    if (textIn(said ?? {}, 'client_key') !== clientKey) return refused('it is for another app');
    const event = textIn(said ?? {}, 'event') ?? '';
    const person = personIn(said ?? {}, 'user_openid');
    const at = endOfSecond(integerIn(said ?? {}, 'create_time'));
    if (person === null || at === null) return refused('it does not say whose account it is, or when');
    const notices: readonly NetworkNotice[] =
      event === 'authorization.removed'
        ? [{ kind: 'deauthorized', person, at }]
        : /^(?:post\.publish|video)\./.test(event)
          ? [{ kind: 'post_state', person }]
          : [];
    return { kind: 'noticed', notices };
  },
});
