import assert from 'node:assert/strict';
import type { Json } from '#contracts/ports/platform.ts';
import { type InsightsHarness, insightsSuite } from '#contracts/ports/platform-insights.suite.ts';
import { postFiguresOf } from '#domain/platforms/read-figures.ts';
import { type Heard, type HeardFigures, TelegramInsights } from '#infra/platforms/telegram/index.ts';
import { suite } from '#test/support/suite.ts';
import { telegramWorld } from './world.ts';

/** What the updates of a bot told; a channel has a group of discussions here. */
class MemoryHeard implements HeardFigures {
  updates: () => readonly { readonly [name: string]: unknown }[] = () => [];

  async of(chatId: string, messageIds: readonly number[]): Promise<ReadonlyMap<number, Heard>> {
    const told = this.updates().flatMap(({ message_reaction_count: one }) => {
      const about = one as { readonly chat: { readonly id: number }; readonly message_id: number } | undefined;
      return about !== undefined && String(about.chat.id) === chatId ? [about] : [];
    });
    return new Map(
      messageIds.map((id) => {
        const newest = told.findLast(({ message_id }) => message_id === id);
        const counted = newest === undefined ? {} : { message_reaction_count: newest as unknown as Json };
        return [id, { ...counted, discussion: { messages: 2 } }];
      }),
    );
  }
}

const listening = async () => {
  const it = await telegramWorld();
  const bot = it.network.bot();
  const chat = it.network.chat({ username: 'acme_figures' });
  const account = await it.account(chat, bot);
  const heard = new MemoryHeard();
  heard.updates = () => bot.updates;
  let ahead = 0;
  const clock = () => Date.now() + ahead;
  const source = new TelegramInsights({ ...it.options, clock, heard });
  const pass = async () => {
    ahead += 2 * 86_400_000;
  };
  return { ...it, bot, chat, who: account, heard, source, pass };
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
    close: async () => it.network.close(),
    account: () => it.who,
    publish: () => subjectOf(it),
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
  t.after(() => it?.network.close());
  const never = new AbortController().signal;

  t('the newest update counts the likes; before the first one there are none', async () => {
    const post = await subjectOf(it);
    const likes = async () => {
      const { value: answer } = await it.source.fetchPostInsights('telegram', it.who, [post], never).next();
      assert.ok(answer?.kind === 'reported');
      const read = postFiguresOf('telegram', 'feed', answer.raw, { hasVideo: false });
      assert.ok(read.kind === 'figures');
      return read.figures.likes;
    };
    assert.equal(await likes(), null);
    const messageId = Number(post.externalId.split(':')[1]);
    it.network.react(it.chat, messageId, { '👍': 3 });
    it.network.react(it.chat, messageId, { '👍': 14, '🔥': 1 });
    assert.equal(await likes(), 15);
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
});
