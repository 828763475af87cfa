import { createHmac } from 'node:crypto';
import type { NetworkInbox, NetworkNotice } from '#contracts/ports/network-inbox.ts';
import { linkedinInbox } from '../inboxes/linkedin.ts';
import { metaInbox } from '../inboxes/meta.ts';
import { tiktokInbox } from '../inboxes/tiktok.ts';

/** How networks call us: each form as the network signs it, and as we read it. */

export interface MadeCall {
  /** Behind the name of the network in the path; null: nothing. */
  readonly topic: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What the sandbox says, about an account by its external id. */
export interface Said {
  readonly kind: NetworkNotice['kind'];
  readonly person: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface Calls {
  inbox(secret: string): NetworkInbox;
  /** Null: the network says nothing of the kind. */
  make(secret: string, said: Said): MadeCall | null;
}

const hmac = (secret: string, text: string) => createHmac('sha256', secret).update(text);
const json = { 'content-type': 'application/json' };

export const metaCalls: Calls = {
  inbox: metaInbox,
  make(secret, { kind, person, now }) {
    if (kind === 'post_state') return null;
    const said = { algorithm: 'HMAC-SHA256', issued_at: Math.floor(now / 1_000), user_id: person };
    const payload = Buffer.from(JSON.stringify(said)).toString('base64url');
    return {
      topic: kind === 'deauthorized' ? 'deauthorize' : 'delete',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `signed_request=${hmac(secret, payload).digest('base64url')}.${payload}`,
    };
  },
};

const clientKey = 'sandbox';

export const tiktokCalls: Calls = {
  inbox: (secret) => tiktokInbox({ clientKey, secret }),
  make(secret, { kind, person, now }) {
    if (kind === 'delete_data') return null;
    const time = Math.floor(now / 1_000);
    const [event, content] =
      kind === 'deauthorized'
        ? ['authorization.removed', { reason: 1 }]
        : [
            'post.publish.complete',
            { publish_id: 'v_pub_file~v2-1.7440000000000000001', publish_type: 'DIRECT_PUBLISH' },
          ];
    const body = JSON.stringify({
      ...{ client_key: clientKey, event, create_time: time, user_openid: person },
      content: JSON.stringify(content),
    });
    const signature = hmac(secret, `${time}.${body}`).digest('hex');
    return { topic: null, headers: { ...json, 'tiktok-signature': `t=${time},s=${signature}` }, body };
  },
};

export const linkedinCalls: Calls = {
  inbox: linkedinInbox,
  make(secret, { kind, person, now }) {
    if (kind !== 'post_state') return null;
    const body = JSON.stringify({
      type: 'ORGANIZATION_SOCIAL_ACTION_NOTIFICATIONS',
      notifications: [
        {
          ...{ action: 'LIKE', organizationalEntity: person, sourcePost: 'urn:li:share:7240000000000000001' },
          ...{ notificationId: now, lastModifiedAt: now },
        },
      ],
    });
    const signature = hmac(secret, `hmacsha256=${body}`).digest('hex');
    return { topic: null, headers: { ...json, 'x-li-signature': signature }, body };
  },
};
