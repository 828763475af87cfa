import assert from 'node:assert/strict';
import { composedWorld, composer, refused } from '#test/support/composing.ts';
import { suite } from '#test/support/suite.ts';

const { world, tester } = await composedWorld(['x']);
const own = await composer(world, ['x', 'bluesky', 'pinterest']);
const to = (...platforms: readonly string[]) => ({ targets: { mode: 'group', clientId: own.clientId, platforms } });
const rule = async (rules: object, clientId = own.clientId): Promise<void> => {
  const answer = await tester.patch(`/clients/${clientId}`, { rules });
  assert.equal(answer.status, 200, answer.text);
  await world.settled();
};

interface Reported {
  readonly code: string;
  readonly path: string;
  readonly accountId?: string;
}
interface ShownVerdict {
  readonly platform: string;
  readonly ok: boolean;
  readonly errors: readonly Reported[];
  readonly warnings: readonly Reported[];
}
const codes = (reported: readonly Reported[]): readonly string[] => reported.map(({ code }) => code);

suite('rules of clients over HTTP', (t) => {
  const create = (body: object) => tester.post('/posts', own.body({ ...to('x', 'bluesky'), ...body }));
  const verdicts = async (body: object): Promise<readonly ShownVerdict[]> =>
    (await tester.post('/posts/preview', own.body({ ...to('x', 'bluesky'), ...body }))).data
      .verdicts as readonly ShownVerdict[];

  t('a banned word refuses the post, for each account whose text has it, before and after overrides', async () => {
    await rule({ bannedWords: ['Cheap', 'buy now'] });
    const variants = [{ platform: 'bluesky', contentOverride: 'Fine.' }];
    const answer = await create({ content: 'CHEAP, so buy  now!', variants });
    refused(answer, 422, 'validation_failed', ['/content']);
    assert.deepEqual(
      answer.body.errors?.map(({ code, accountId }) => [code, accountId]),
      [['banned_word', own.accounts.x]],
    );
    const overridden = await create({ content: 'Fine.', variants: [{ ...variants[0], contentOverride: 'So cheap.' }] });
    refused(overridden, 422, 'validation_failed', ['/variants/0/contentOverride']);
    const comment = [{ platform: 'x', overrides: { firstComment: 'Buy now.' } }];
    refused(await create({ content: 'Fine.', variants: comment }), 422, 'validation_failed', ['/content']);
    assert.equal((await create({ content: 'Cheaper by now.' })).status, 200);
    // A draft is kept, and refused when it is published.
    const draft = await create({ content: 'Cheap.', saveDraft: true });
    assert.equal(draft.status, 200);
    refused(await tester.post(`/posts/${draft.data.id}/publish`, {}), 422, 'validation_failed');
    const [x, bluesky] = await verdicts({ content: 'Cheap.', variants });
    const byPlatform = new Map([x, bluesky].map((one) => [one?.platform, one]));
    assert.deepEqual(codes(byPlatform.get('x')?.errors ?? []), ['banned_word']);
    assert.deepEqual([byPlatform.get('x')?.ok, byPlatform.get('bluesky')?.ok], [false, true]);
  });

  t('rules that are too many or too long are refused, so that none is passed over', async () => {
    const rules = { bannedWords: Array.from({ length: 5_001 }, String), disclaimer: 'x'.repeat(5_001) };
    const paths = ['/rules/bannedWords', '/rules/disclaimer'];
    refused(await tester.patch(`/clients/${own.clientId}`, { rules }), 422, 'validation_failed', paths);
    refused(await tester.post('/clients', { name: 'Long', type: 'brand', rules }), 422, 'validation_failed', paths);
    await rule({ bannedWords: [...Array.from({ length: 4_999 }, (_, n) => `w${n}`), 'cheap'] });
    refused(await create({ content: 'Cheap.' }), 422, 'validation_failed', ['/content', '/content']);
  });

  t('a revise is held to the rules too', async () => {
    await rule({});
    const made = await create({ content: 'A word.' });
    await rule({ bannedWords: ['cheap'] });
    refused(await tester.post(`/posts/${made.data.id}/revise`, { content: 'Cheap.' }), 422, 'validation_failed');
  });

  t('a required hashtag and the disclaimer refuse, or are warned of', async () => {
    await rule({ requiredHashtags: ['Ad'], disclaimer: 'Terms apply.' });
    const answer = await create({ content: 'Nice.', ...to('x') });
    assert.deepEqual(
      answer.body.errors?.map(({ code }) => code),
      ['hashtag_missing', 'disclaimer_missing'],
    );
    assert.equal((await create({ content: 'Nice. Terms apply. #ad' })).status, 200);
    await rule({ requiredHashtags: ['Ad'], disclaimer: 'Terms apply.', enforce: 'warn' });
    assert.equal((await create({ content: 'Nice.' })).status, 200);
    for (const { ok, errors, warnings } of await verdicts({ content: 'Nice.' })) {
      assert.deepEqual([ok, errors], [true, []]);
      const reported = codes(warnings).filter((code) => code.endsWith('_missing'));
      assert.deepEqual(reported, ['hashtag_missing', 'disclaimer_missing']);
    }
  });

  t('links are held to the policy, those of overrides too', async () => {
    await rule({ linkPolicy: { allowedHosts: ['acme.example'] } });
    assert.equal((await create({ content: 'See https://shop.acme.example/a' })).status, 200);
    refused(await create({ content: 'See https://evil.example/' }), 422, 'validation_failed', ['/content', '/content']);
    const variants = [{ platform: 'bluesky', overrides: { link: 'https://evil.example/card' } }];
    const answer = await create({ content: 'See.', variants });
    assert.deepEqual(
      answer.body.errors?.map(({ code }) => code),
      ['link_not_allowed'],
    );
    await rule({ linkPolicy: 'none' });
    refused(await create({ content: 'See https://shop.acme.example/a' }), 422, 'validation_failed');
  });

  t('the rules of the client of an account hold for a post of another client', async () => {
    await rule({});
    const other = await composer(world, ['x']);
    await rule({ bannedWords: ['cheap'] }, other.clientId);
    const accountIds = [own.accounts.x, other.accounts.x];
    const answer = await create({ content: 'Cheap.', targets: { mode: 'accounts', accountIds } });
    assert.deepEqual(
      answer.body.errors?.map(({ code, accountId }) => [code, accountId]),
      [['banned_word', other.accounts.x]],
    );
  });
});
