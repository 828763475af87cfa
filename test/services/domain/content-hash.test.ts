import { equal, match, notEqual } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type CoveredBody, contentHashOf } from '#domain/post/content.ts';
import type { PostBody } from '#schemas/post.ts';
import { postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

suite('the hash of what is approved', (t) => {
  const [one, two] = [randomUUID(), randomUUID()];
  const variant = { platform: 'x', contentOverride: 'Hi', mediaIdsOverride: null, overrides: { a: 1, b: 2 } } as const;
  const body = postBody({ mediaIds: [one], variants: [{ ...variant, overrides: { ...variant.overrides } }] });
  const accounts = [{ accountId: one }, { accountId: two }];
  const sha = (id: string): string => (id === one ? 'a' : 'b');
  const of = (over: Partial<PostBody> = {}, to = accounts, sha256Of = sha): string =>
    contentHashOf({ ...body, ...over }, to, sha256Of);

  t('is the same for the same content, whatever the order of members and accounts', () => {
    match(of(), /^[0-9a-f]{64}$/);
    equal(of({ variants: [{ ...variant, overrides: { b: 2, a: 1 } }] }), of());
    equal(of({}, accounts.toReversed()), of());
  });

  t('does not cover times, the zone, how the post is scheduled, its campaign or its reference', () => {
    // A new member of a body does not compile until the hash covers it or it stands here.
    const free: Required<Omit<PostBody, keyof CoveredBody>> = {
      schedule: { ...body.schedule, type: 'at', scheduledLocal: '2026-03-02T08:00' },
      ...{ timezone: 'Europe/Paris', scheduleMode: 'native', requestApproval: true, campaignId: two },
      externalRef: 'A-1',
      targetSelection: { mode: 'accounts', clientId: null, accountIds: [one], platforms: null },
    };
    for (const [name, value] of Object.entries(free)) equal(of({ [name]: value }), of(), name);
  });

  t('covers every text, every file and its bytes, the disclosure and the accounts', () => {
    const thread = {
      segments: [
        { content: 'a', mediaIds: [] },
        { content: 'b', mediaIds: [] },
      ],
    };
    const changed: readonly Partial<PostBody>[] = [
      { content: 'Hello, world.' },
      { mediaIds: [two] },
      { mediaIds: [one, two] },
      { variants: [] },
      { variants: [{ ...variant, overrides: { a: 1, b: 3 } }] },
      { variants: [{ ...variant, contentOverride: 'Ho' }] },
      { thread },
      { mediaAltTexts: { [one]: 'a cat' } },
      { coverMediaId: two },
      { coverFrameMs: 1 },
      { aiDisclosure: true },
    ];
    const hashes = new Set([of(), ...changed.map((over) => of(over))]);
    equal(hashes.size, changed.length + 1);
    notEqual(of({}, [{ accountId: one }]), of());
    notEqual(
      of({}, accounts, () => 'c'),
      of(),
    );
  });
});
