import type { PostBody } from '#schemas/post.ts';
import type { Fact } from '../decider.ts';

/**
 * The two bodies of a post. Its law: the released body is what went out, what a person approved, or what needed no
 * approval; a revise that is held is asked for beside it, and nothing but its release makes it the released one. While
 * nothing of a post was ever released, it has one body: the newest that was asked for.
 */

export interface BodyAt {
  /** Of the event that holds the body. */
  readonly revision: number;
  readonly body: PostBody;
}

export interface PostBodies {
  /** The released body; while `released` is false, the only one. */
  readonly body: PostBody;
  /** Of the event that holds `body`. */
  readonly bodyRevision: number;
  /** Whether anything of the plan was released. */
  readonly released: boolean;
  /** What the newest held revise asks for; null: nothing beside the released body. */
  readonly asked: BodyAt | null;
  /**
   * What the revise replaced that is the newest event of the stream: a submission right behind it puts this back. Null
   * after every other event, and where nothing was released.
   */
  readonly replaced: BodyAt | null;
}

type Bodies<Post> = Post & PostBodies;

/** What the newest plan or revise gave its targets: of a post that is folded up to it, what they show and publish. */
export const newestBody = ({ body, asked = null }: Pick<PostBodies, 'body'> & Partial<Pick<PostBodies, 'asked'>>) =>
  asked?.body ?? body;

export const planned = (body: PostBody, { revision }: Fact, held: boolean): PostBodies => ({
  body,
  bodyRevision: revision,
  released: !held,
  asked: null,
  replaced: null,
});

/** Until the next event says that the revise is held, it needs no approval. */
export const withRevise = <Post>(post: Bodies<Post>, body: PostBody, { revision }: Fact): Bodies<Post> => {
  const replaced = post.released ? { revision: post.bodyRevision, body: post.body } : null;
  return { ...post, body, bodyRevision: revision, asked: null, replaced };
};

/** The plan or the revise right before is held. */
export const withSubmission = <Post>(post: Bodies<Post>): Bodies<Post> => {
  const { body, bodyRevision, replaced } = post;
  if (replaced === null) return post;
  const asked = { revision: bodyRevision, body };
  return { ...post, body: replaced.body, bodyRevision: replaced.revision, asked, replaced: null };
};

/** What was asked for is the released body; only a released post has one beside. The campaign is of the post, and may have changed since it was asked. */
export const withRelease = <Post>(post: Bodies<Post>): Bodies<Post> => {
  const { asked, body } = post;
  if (asked === null) return { ...post, released: true };
  const next = { ...asked.body, campaignId: body.campaignId };
  return { ...post, body: next, bodyRevision: asked.revision, asked: null };
};

/** The campaign is of the post, not of one of its bodies. */
export const withCampaign = <Post extends { readonly body: PostBody; readonly asked?: BodyAt | null }>(
  post: Post,
  campaignId: string | null,
): Post => {
  const changed = { ...post, body: { ...post.body, campaignId } };
  const { asked = null } = post;
  return asked === null ? changed : { ...changed, asked: { ...asked, body: { ...asked.body, campaignId } } };
};

/** A submission directly follows the revise that it holds. */
export const settled = <Post>(post: Bodies<Post>): Bodies<Post> =>
  post.replaced === null ? post : { ...post, replaced: null };
