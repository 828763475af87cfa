import assert from 'node:assert/strict';
import { type InsightsHarness, insightsSuite } from '#contracts/ports/platform-insights.suite.ts';
import type { Pushed } from '#contracts/ports/pushed-posts.ts';
import { postFiguresOf } from '#domain/platforms/read-figures.ts';
import { TelegramInsights } from '#infra/platforms/telegram/index.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { PostgresPushedPosts } from '#infra/postgres/pushed-posts.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { telegramWorld } from './world.ts';

const listening = async () => {
  const it = await telegramWorld();
  const bot = it.network.bot();
  const chat = it.network.chat({ username: 'acme_figures' });
  const account = await it.account(chat, bot);
  const pool = openPool({ url: (await preparedDatabase()).url });
  const pushed = new PostgresPushedPosts({ pool });
  let ahead = 0;
  const clock = () => Date.now() + ahead;
  const source = new TelegramInsights({ ...it.options, clock, pushed });
  const pass = async () => {
    ahead += 2 * 86_400_000;
  };
  const close = async () => {
    await pool.end();
    it.network.close();
  };
  return { ...it, bot, chat, who: account, pushed, source, pass, close };
};

const subjectOf = async ({ publish, request, who }: Awaited<ReturnType<typeof listening>>) => {
  const asked = request(who);
  const { outcome } = await publish(asked);
  assert.ok(outcome.kind === 'published');
  const { externalId, publishedAt } = outcome;
  return { targetId: asked.targetId, externalId, publishedAt, use: 'feed', hasVideo: false } as const;
};

const harness = async (): Promise<InsightsHarness> => {
  const it = await listening();
  return {
    source: it.source,
    platforms: ['telegram'],
    onlyHears: true,
    close: it.close,
    account: () => it.who,
    publish: async () => {
      const post = await subjectOf(it);
      const [place = '', number = ''] = post.externalId.split(':');
      const discussion = { place, post: Number(number), group: '-77', root: Number(number) };
      const comments = [1, 2].map((at) => ({ group: '-77', root: discussion.post, message: 10_000 + at }));
      await it.pushed.keep({ reactions: [], discussions: [discussion], comments });
      return post;
    },
    remove: async () => undefined,
    pass: it.pass,
  };
};

suite('telegram as a source of figures', (t) => insightsSuite(t, harness));

suite('figures of telegram', (t) => {
  let it: Awaited<ReturnType<typeof listening>>;
  t.before(async () => {
    it = await listening();
  });
  t.after(() => it?.close());
  const never = new AbortController().signal;

  t('figures are what was pushed; of what was not pushed there are none, and none is not zero', async () => {
    const [post, other] = [await subjectOf(it), await subjectOf(it)];
    const figures = async () => {
      const found: unknown[] = [];
      for await (const answer of it.source.fetchPostInsights('telegram', it.who, [post, other], never)) {
        assert.ok(answer.kind === 'reported');
        const read = postFiguresOf('telegram', 'feed', answer.raw, { hasVideo: false });
        assert.ok(read.kind === 'figures');
        found.push([read.figures.likes, read.figures.comments]);
      }
      return found;
    };
    assert.deepEqual(await figures(), [
      [null, null],
      [null, null],
    ]);
    const [place = '', number = ''] = post.externalId.split(':');
    const about = { place, post: Number(number) };
    const reactions = (...counts: number[]) => ({ reactions: counts.map((total_count) => ({ total_count })) });
    const keep = (pushed: Partial<Pushed>) =>
      it.pushed.keep({ ...{ reactions: [], discussions: [], comments: [] }, ...pushed });
    await keep({ reactions: [{ ...about, at: 1, said: reactions(14, 1) }] });
    assert.deepEqual(await figures(), [
      [15, null],
      [null, null],
    ]);
    await keep({ reactions: [{ ...about, at: 2, said: reactions() }] });
    await keep({
      discussions: [{ ...about, group: '-9', root: 40 }],
      comments: [{ group: '-9', root: 40, message: 41 }],
    });
    assert.deepEqual(await figures(), [
      [0, 1],
      [null, null],
    ]);
  });

  t('figures of the account fail as its network does', async () => {
    const kind = async () => (await it.source.fetchAccountInsights('telegram', it.who, never)).kind;
    const refused = { kind: 'refuse', description: 'X' } as const;
    it.network.arm('getChatMemberCount', { ...refused, code: 500 });
    assert.equal(await kind(), 'unavailable');
    it.network.arm('getChatMemberCount', { ...refused, code: 429, parameters: { retry_after: 5 } });
    assert.equal(await kind(), 'rate_limited');
    it.network.arm('getChatMemberCount', { ...refused, code: 401 });
    assert.equal(await kind(), 'reauth_required');
    assert.equal(await kind(), 'reported');
  });

  t("a dead token of the operator's bot is no matter of the account's owner", async () => {
    const who = await it.account(it.chat, null);
    const kinds = async (operatorToken: string | null) => {
      const source = new TelegramInsights({ ...it.options, operatorToken });
      const post = { ...(await subjectOf(it)), externalId: '1:1' };
      const { value } = await source.fetchPostInsights('telegram', who, [post], never).next();
      return [(await source.fetchAccountInsights('telegram', who, never)).kind, value?.kind];
    };
    assert.deepEqual(await kinds(it.bot.token), ['reported', 'removed']);
    assert.deepEqual(await kinds('1:gone'), ['unavailable', 'removed']);
    assert.deepEqual(await kinds(null), ['unavailable', 'unavailable']);
  });
});
