/** Figures and boards of Pinterest: what is asked for, and what the rules of the network read of it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { InsightsSubject, PostInsightsAnswer } from '#contracts/ports/platform-insights.ts';
import { accountFiguresOf, postFiguresOf } from '#domain/platforms/read-figures.ts';
import { problems } from '#test/support/networks/pinterest/index.ts';
import {
  type HeldFiles,
  heldFiles,
  type PinterestWorld,
  pinterestWorld,
} from '#test/support/networks/pinterest/world.ts';
import { suite } from '#test/support/suite.ts';

const dayMs = 86_400_000;
const within = () => AbortSignal.timeout(5_000);

suite('figures of pinterest', (t) => {
  let world: PinterestWorld;
  let files: HeldFiles;
  t.before(() => {
    files = heldFiles();
  });
  t.after(() => files.remove());
  t.before.each(async () => {
    world = await pinterestWorld();
  });
  t.after.each(() => world.network.close());

  type Account = Awaited<ReturnType<PinterestWorld['account']>>;
  const published = async (account: Account, hasVideo = false): Promise<InsightsSubject> => {
    const media = [hasVideo ? files.video() : files.picture()];
    const { outcome } = await world.publish(world.request(account, { content: randomUUID(), media }));
    assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
    const { externalId, publishedAt } = outcome;
    return { targetId: randomUUID(), externalId, publishedAt, use: 'feed', hasVideo };
  };
  const ask = async (account: Account, posts: readonly InsightsSubject[]) => {
    const answers: PostInsightsAnswer[] = [];
    for await (const one of world.source.fetchPostInsights('pinterest', account, posts, within())) answers.push(one);
    return answers;
  };
  const read = (answer: PostInsightsAnswer | undefined, hasVideo: boolean) => {
    assert.ok(answer?.kind === 'reported', JSON.stringify(answer));
    const mapped = postFiguresOf('pinterest', 'feed', answer.raw, { hasVideo });
    assert.ok(mapped.kind === 'figures');
    assert.deepEqual(mapped.odd, []);
    return { figures: mapped.figures, fields: answer.fields ?? [] };
  };
  const queries = (end: string) =>
    world.http.calls
      .filter(({ url }) => new URL(url).pathname.endsWith(end))
      .map(({ url }) => new URL(url).searchParams);

  t('every figure of the mapping is asked for, of a video in the two sets that Pinterest takes apart', async () => {
    const account = await world.account();
    const [picture, video] = [await published(account), await published(account, true)];
    const answers = await ask(account, [picture, video]);
    const common = {
      ...{ impressions: 240, likes: 10, comments: 2, saves: 20, clicks: 37, follows: 4, profileVisits: 6 },
      clicksByType: { pin_click: 37, outbound_click: 20 },
    };
    const ofVideo = { videoViews: 20, videoCompletions: 8, watchTimeMinutes: 2, avgViewDurationSeconds: 2 };
    for (const [at, more] of [{}, ofVideo].entries()) {
      const { figures, fields } = read(answers[at], at === 1);
      const wanted = { ...common, ...more };
      assert.deepEqual(Object.fromEntries(Object.keys(wanted).map((name) => [name, figures[name as 'likes']])), wanted);
      assert.deepEqual(fields.toSorted(), Object.keys(wanted).toSorted());
    }
    const asked = queries('/analytics').map((one) => one.get('metric_types')?.split(','));
    assert.equal(asked.length, 3);
    assert.deepEqual(asked[2], ['USER_FOLLOW', 'PROFILE_VISIT']);
  });

  t('Pinterest is asked for no day that it has no longer', async () => {
    const account = await world.account();
    const old = await published(account);
    world.network.state.advance(200 * dayMs);
    const renewed = await world.account(world.network.state.people.get(account.externalId));
    read((await ask(renewed, [old]))[0], false);
    const [query] = queries('/analytics');
    const [from, to] = ['start_date', 'end_date'].map((name) => Date.parse(query?.get(name) ?? ''));
    assert.equal(((to ?? 0) - (from ?? 0)) / dayMs, 89);
  });

  t('where there are no analytics the pin tells what it can, and the rest is absent', async () => {
    const account = await world.account();
    for (const answer of [problems.forbidden, problems.invalid, problems.not_permitted]) {
      const pin = await published(account);
      world.network.script({ route: 'GET /v5/pins/:id/analytics', then: { answer } });
      const { figures, fields } = read((await ask(account, [pin]))[0], false);
      assert.deepEqual([figures.impressions, figures.likes, figures.comments, figures.clicks], [40, 10, 2, 7]);
      assert.ok(!fields.includes('saves') && typeof figures.saves !== 'number');
    }
    world.network.script({ route: 'GET /v5/pins/:id/analytics', then: { answer: problems.unavailable } });
    assert.equal((await ask(account, [await published(account)]))[0]?.kind, 'unavailable');
  });

  t('a pin that is gone is removed; a limit holds for all posts behind it, without a call', async () => {
    const account = await world.account();
    const pins = [await published(account), await published(account), await published(account)];
    world.network.state.deleted.add(pins[0]?.externalId ?? '');
    const [gone] = await ask(account, pins.slice(0, 1));
    assert.ok(gone?.kind === 'removed' && JSON.stringify(gone.raw).includes('Pin not found'));
    world.network.script({ route: 'GET /v5/pins/:id', then: { answer: problems.too_many_requests } });
    const calls = world.network.state.calls.length;
    const answers = await ask(account, pins.slice(1));
    assert.deepEqual(
      answers.map(({ kind }) => kind),
      ['rate_limited', 'rate_limited'],
    );
    assert.equal(world.network.state.calls.length, calls + 1);
  });

  t('an account is asked about seven days one by one, without naming figures', async () => {
    const account = await world.account(world.network.person({ businessName: 'Acme' }));
    const answer = await world.source.fetchAccountInsights('pinterest', account, within());
    assert.ok(answer.kind === 'reported', JSON.stringify(answer));
    const today = Math.floor(world.network.state.now() / dayMs) * dayMs;
    const day = (ago: number) => new Date(today - ago * dayMs).toISOString().slice(0, 10);
    assert.equal(answer.figuresOf, day(1));
    assert.deepEqual(
      answer.earlier?.map((one) => one.day),
      [2, 3, 4, 5, 6, 7].map(day),
    );
    const mapped = accountFiguresOf('pinterest', answer.raw);
    assert.ok(mapped.kind === 'figures');
    const { followerCount, audience } = mapped.figures as { followerCount: number; audience?: unknown };
    assert.equal(followerCount, 10);
    assert.ok(audience !== null);
    assert.deepEqual(answer.profile?.displayName, 'Acme');
    assert.ok(queries('/user_account/analytics').every((one) => !one.has('metric_types')));
  });

  t('an account that is no business has followers, and no figures of a day', async () => {
    const account = await world.account(world.network.person({ accountType: 'PINNER' }));
    const answer = await world.source.fetchAccountInsights('pinterest', account, within());
    assert.ok(answer.kind === 'reported');
    assert.deepEqual([answer.figuresOf, answer.fields], [null, ['followerCount']]);
    world.network.script({ route: 'GET /v5/user_account/analytics', then: { answer: problems.unavailable } });
    const other = await world.account();
    assert.equal((await world.source.fetchAccountInsights('pinterest', other, within())).kind, 'unavailable');
  });

  t('boards are listed page by page, those of others to which the account may pin included', async () => {
    const person = world.network.person();
    const account = await world.account(person);
    const own = Array.from({ length: 260 }, () => world.network.board(person));
    const shared = world.network.board(world.network.person(), { collaborators: [person.id], name: 'Shared' });
    const secret = world.network.board(person, { privacy: 'SECRET' });
    world.network.board(world.network.person());
    const ask = () => world.accounts?.choices('pinterest', account, 'boardId', within());
    const all = await ask();
    assert.ok(all?.kind === 'choices', JSON.stringify(all));
    const values = all.choices.map(({ value }) => value);
    assert.deepEqual(values.toSorted(), [...own, shared].map(({ id }) => id).toSorted());
    assert.ok(!values.includes(secret.id) && !all.isCut);
    assert.deepEqual(
      all.choices.find(({ value }) => value === shared.id),
      { value: shared.id, label: 'Shared', about: 'PUBLIC' },
    );
    world.network.script({ route: 'GET /v5/boards', then: { answer: problems.too_many_requests } });
    assert.equal((await ask())?.kind, 'rate_limited');
  });

  t('figures leave half of what the app may call in a day to posts', async () => {
    const account = await world.account();
    const { source, adapter } = world.another({}, { id: 'few', budget: 4 });
    const answer = await source.fetchAccountInsights('pinterest', account, within());
    assert.ok(answer.kind === 'reported' && world.network.state.calls.length === 2, JSON.stringify(answer));
    for (const content of ['One', 'Two', 'Three']) {
      const { outcome } = await world.publish(world.request(account, { content, media: [files.picture()] }), adapter);
      assert.equal(outcome.kind, content === 'Three' ? 'rate_limited' : 'published');
      if (outcome.kind === 'rate_limited') assert.match(outcome.retryAt, /T00:00:00\.000Z$/);
    }
    assert.equal(world.network.state.calls.length, 4);
  });
});
