/** What a network pushed of posts, in Postgres: one row a post. Every statement can be repeated. */
import type pg from 'pg';
import type { Json } from '#contracts/ports/platform.ts';
import { type Pushed, type PushedFigures, type PushedPosts, pushedLimits } from '#contracts/ports/pushed-posts.ts';

/** Gaps in which a test kills the process. */
export type PushedGap = 'pushed-posts.reactions' | 'pushed-posts.discussions' | 'pushed-posts.comments';

const reactionsSql = `
  insert into ops.pushed_posts as pushed (place, post, reactions, reacted_at)
  select * from unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[])
  on conflict (place, post) do update set reactions = excluded.reactions, reacted_at = excluded.reacted_at
  where pushed.reacted_at is null or pushed.reacted_at <= excluded.reacted_at`;

/** A group that is linked anew begins another discussion, whose messages have other numbers. */
const discussionsSql = `
  insert into ops.pushed_posts as pushed (place, post, discussion_group, discussion_root)
  select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
  on conflict (place, post) do update
  set discussion_group = excluded.discussion_group, discussion_root = excluded.discussion_root
  where pushed.discussion_group is null`;

/**
 * Numbers of messages grow within a group, and updates come in their order: a message that is not newer than the last
 * one was counted before. The lock makes a second listener count on what the first one wrote.
 */
const commentsSql = `
  with said as (
    select * from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as one (discussion_group, discussion_root, message)
  ), locked as (
    select place, post, discussion_group, discussion_root, coalesce(last_comment, 0) as last from ops.pushed_posts
    where (discussion_group, discussion_root) in (select discussion_group, discussion_root from said)
    order by place, post for update
  ), fresh as (
    select place, post, count(distinct message)::int as number, max(message) as last
    from locked join said using (discussion_group, discussion_root) where message > locked.last group by place, post
  )
  update ops.pushed_posts pushed set comments = pushed.comments + fresh.number, last_comment = fresh.last
  from fresh where pushed.place = fresh.place and pushed.post = fresh.post`;

/** The newest posts of a place stay. */
const trimSql = `
  delete from ops.pushed_posts pushed using unnest($1::bigint[]) as full_place (place)
  where pushed.place = full_place.place and pushed.post < (
    select post from ops.pushed_posts last where last.place = full_place.place order by post desc offset $2 limit 1)`;

const sweepSql = `
  delete from ops.pushed_posts where (place, post) in (
    select place, post from ops.pushed_posts where pushed_at < now() - $1 * interval '1 day' limit 10000)`;

export class PostgresPushedPosts implements PushedPosts {
  readonly #pool: pg.Pool;
  readonly #faultPoint: ((name: PushedGap) => void) | undefined;

  constructor({ pool, faultPoint }: { readonly pool: pg.Pool; readonly faultPoint?: (name: PushedGap) => void }) {
    this.#pool = pool;
    this.#faultPoint = faultPoint;
  }

  async keep({ reactions, discussions, comments }: Pushed): Promise<void> {
    // One statement may change a row once.
    const newest = [...new Map(reactions.map((one) => [`${one.place} ${one.post}`, one])).values()];
    if (newest.length > 0) {
      await this.#pool.query(reactionsSql, [
        newest.map(({ place }) => place),
        newest.map(({ post }) => post),
        newest.map(({ said }) => JSON.stringify(said)),
        newest.map(({ at }) => at),
      ]);
      this.#faultPoint?.('pushed-posts.reactions');
    }
    const first = [...new Map(discussions.map((one) => [`${one.place} ${one.post}`, one])).values()];
    if (first.length > 0) {
      await this.#pool.query(discussionsSql, [
        first.map(({ place }) => place),
        first.map(({ post }) => post),
        first.map(({ group }) => group),
        first.map(({ root }) => root),
      ]);
      this.#faultPoint?.('pushed-posts.discussions');
    }
    if (comments.length > 0) {
      await this.#pool.query(commentsSql, [
        comments.map(({ group }) => group),
        comments.map(({ root }) => root),
        comments.map(({ message }) => message),
      ]);
      this.#faultPoint?.('pushed-posts.comments');
    }
    const places = [...new Set([...newest, ...first].map(({ place }) => place))];
    if (places.length > 0) await this.#pool.query(trimSql, [places, pushedLimits.postsPerPlace - 1]);
  }

  async of(place: string, posts: readonly number[]): Promise<ReadonlyMap<number, PushedFigures>> {
    if (posts.length === 0) return new Map();
    const { rows } = await this.#pool.query<{ post: string; reactions: string | null; comments: number }>(
      'select post, reactions, comments from ops.pushed_posts where place = $1 and post = any($2)',
      [place, posts],
    );
    return new Map(
      rows.map(({ post, reactions, comments }) => [
        Number(post),
        // A bot may hear of the discussion and not of its messages (privacy mode): none pushed is not none there.
        {
          reactions: reactions === null ? null : (JSON.parse(reactions) as Json),
          comments: comments === 0 ? null : comments,
        },
      ]),
    );
  }

  async forget(places: readonly string[]): Promise<void> {
    await this.#pool.query('delete from ops.pushed_posts where place = any($1)', [places]);
  }

  async sweep(): Promise<void> {
    await this.#pool.query(sweepSql, [pushedLimits.days]);
  }
}
