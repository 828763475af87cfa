/** The cases that every inbox of a network passes. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { InboundCall, InboundVerdict, NetworkInbox, NetworkNotice } from './network-inbox.ts';

export interface InboxHarness {
  /** Of an app with the secret. */
  inbox(secret: string): NetworkInbox;
  /** As the network signs it; null: it says nothing of the kind. */
  call(
    secret: string,
    said: { readonly kind: NetworkNotice['kind']; readonly person: string; readonly now: number },
  ): InboundCall | null;
  /** An id in the form of the network's own. */
  readonly person: string;
  /** Whether the signature is a part of the body; else headers have it. */
  readonly isSignedInBody: boolean;
  /** Whether what is signed holds a time, so that a call of long ago is none. */
  readonly isDated: boolean;
}

const kinds: readonly NetworkNotice['kind'][] = ['deauthorized', 'delete_data', 'post_state'];
const now = Date.parse('2026-11-29T12:00:00.400Z');
const secret = 'an app secret of the network';

const reasonOf = (verdict: InboundVerdict): string => {
  assert.equal(verdict.kind, 'refused', JSON.stringify(verdict));
  return verdict.kind === 'refused' ? verdict.reason : '';
};

/** A call that differs in one byte of its body, and others that look like it. */
const spoiled = (call: InboundCall): readonly InboundCall[] => {
  const { body } = call;
  const places = [0, Math.floor(body.length / 3), body.length - 2];
  const flipped = places.map((at) => {
    const other = Buffer.from(body);
    other[at] = (other[at] ?? 0) ^ 2;
    return { ...call, body: other };
  });
  return [
    ...flipped,
    { ...call, body: body.subarray(0, -4) },
    { ...call, body: Buffer.concat([body, Buffer.from('1')]) },
    { ...call, body: Buffer.alloc(0), headers: {} },
    { ...call, topic: 'elsewhere' },
    { ...call, method: 'GET' },
  ];
};

export const networkInboxCases = (t: (name: string, run: () => void) => void, harness: InboxHarness): void => {
  const { person, isDated, isSignedInBody } = harness;
  const inbox = harness.inbox(secret);
  const said = kinds.flatMap((kind) => {
    const call = harness.call(secret, { kind, person, now });
    return call === null ? [] : [{ kind, call }];
  });

  t('what the network signed is read, with the end of its second, and a repeat says the same', () => {
    assert.ok(said.length > 0);
    for (const { kind, call } of said) {
      const notice = { kind, person, ...(kind === 'post_state' ? {} : { at: '2026-11-29T12:00:00.999Z' }) };
      for (const later of [0, 60_000]) {
        assert.deepEqual(inbox.verify(call, now + later), { kind: 'noticed', notices: [notice] });
      }
    }
  });

  t('another secret, and a call that was changed on its way, are refused without a word of what was sent', () => {
    for (const { call } of said) {
      for (const one of spoiled(call)) {
        const reason = reasonOf(inbox.verify(one, now));
        assert.ok(!reason.includes(person));
      }
      reasonOf(harness.inbox(`${secret}.`).verify(call, now));
    }
  });

  t('a call of long ago or of a time to come is refused', () => {
    for (const { call } of isDated ? said : []) {
      for (const away of [-8, 8]) reasonOf(inbox.verify(call, now + away * 86_400_000));
    }
  });

  t('nothing that is sent makes it throw', () => {
    const text = (length: number): string => randomBytes(length).toString('latin1');
    for (let round = 0; round < 200; round += 1) {
      for (const { call } of said) {
        const cut = Math.floor((call.body.length * round) / 200);
        const bodies = [
          randomBytes(round),
          Buffer.from(text(round)),
          call.body.subarray(0, cut),
          Buffer.from('[[['.repeat(round)),
        ];
        const headers = Object.fromEntries(Object.keys(call.headers).map((name) => [name, text(round % 90)]));
        for (const body of bodies) {
          for (const one of [
            { ...call, body },
            { ...call, body, headers },
            { ...call, headers },
          ]) {
            const verdict = inbox.verify(one, now);
            const isWhole = one.body.equals(call.body) && (isSignedInBody || one.headers === call.headers);
            assert.equal(verdict.kind === 'noticed', isWhole);
          }
        }
        const query = { challengeCode: text(round), 'hub.challenge': text(round) };
        reasonOf(inbox.verify({ ...call, method: 'GET', query, body: Buffer.alloc(0) }, now));
      }
    }
  });
};
