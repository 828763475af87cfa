import { equal } from 'node:assert/strict';
import { canonicalJson } from '#domain/canonical.ts';
import { contentHashOf } from '#domain/post/content.ts';
import { renditionIdOf } from '#domain/renditions/index.ts';
import type { PostBody } from '#schemas/post.ts';
import { postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

suite('canonical JSON', (t) => {
  t('orders members by code units at every depth, and keeps the order of lists', () => {
    const value = {
      b: [{ z: 1, a: 2 }, 3],
      a: null,
      B: true,
      10: 'ten',
      9: 'nine',
      é: 'x',
      '\u{1f600}': 1,
      '\ufb01': 2,
    };
    equal(
      canonicalJson(value),
      '{"10":"ten","9":"nine","B":true,"a":null,"b":[{"a":2,"z":1},3],"é":"x","\u{1f600}":1,"\ufb01":2}',
    );
  });

  t('leaves out undefined members, and has null where JSON has no value', () => {
    equal(canonicalJson({ a: undefined, b: [undefined, Number.NaN], c: {} }), '{"b":[null,null],"c":{}}');
    equal(canonicalJson(undefined), 'null');
  });

  t('writes texts and numbers as JSON does', () => {
    equal(canonicalJson(['"\\\n\u2028\ud800', -0, 1e21, 0.1]), '["\\"\\\\\\n\u2028\\ud800",0,1e+21,0.1]');
  });

  // Hashes of it are on disk: approvals, renditions and kept answers are found by them.
  t('the hash of an approval stays', () => {
    const [one, two] = ['0190c2a0-0000-7000-8000-000000000001', '0190c2a0-0000-7000-8000-000000000002'];
    const body: PostBody = postBody({
      content: 'Grüße, "world" \u{1f600}\n',
      mediaIds: [one],
      variants: [
        {
          platform: 'x',
          contentOverride: 'Hi',
          mediaIdsOverride: [two],
          overrides: { z: [1, { b: null, a: 0.5 }], a: '' },
        },
      ],
      thread: { segments: [{ content: 'a', mediaIds: [] }] },
      mediaAltTexts: { [two]: 'a cat', [one]: 'a dog' },
      aiDisclosure: true,
    });
    const sha256Of = (id: string): string | null => (id === one ? 'f'.repeat(64) : null);
    equal(
      contentHashOf(body, [{ accountId: two }, { accountId: one }], sha256Of),
      '27feb456d70c542f839828b5f9eba03891d73fb4fe5ade9d7762608bef08103a',
    );
    equal(
      contentHashOf(postBody(), [], () => null),
      '8bfe03e8ceb527038e7d96ec42f07843c79a7e8e88b570935b421e4da491e301',
    );
  });

  t('the ids of renditions stay', () => {
    const size = { width: 1_080, height: 1_920, fit: 'pad' } as const;
    const video = { kind: 'video', mode: 'encode', ...size, fps: 29.97, videoKbps: 5_000, maxBytes: null } as const;
    const audio = { kbps: 128, sampleRate: 44_100, channels: 2 };
    equal(renditionIdOf({ ...video, audio }), '781fb971fbd3b737d08223defb5d7aaa');
    equal(
      renditionIdOf({ ...video, audio: null, sound: 'encode', range: 'hdr', rounds: 2 }),
      'da1cf2a4c302ebf7112e1d35318582cc',
    );
    equal(
      renditionIdOf({ kind: 'image', format: 'webp', ...size, quality: 85, maxBytes: 5_000_000 }),
      '91263a0414dd79a7c73b48918fc939af',
    );
    equal(
      renditionIdOf({ kind: 'frame', format: 'jpeg', ...size, atMs: 0, quality: 90, maxBytes: null }),
      '462354afc03fb1011dc5baae26fddc26',
    );
  });
});
