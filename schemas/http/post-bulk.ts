import { Type } from 'typebox';
import { Named, OpenEnum, said } from '#schemas/published.ts';
import { type Cleaned, Maybe, Problem } from './common.ts';
import { Post, PostCreate } from './post.ts';

/** POST /posts/bulk: many posts in one call. */

export const maxBulkPosts = 50;

export const PostBulkItem = Named(
  'PostBulkItem',
  Type.Object(
    {
      ...PostCreate.properties,
      idempotencyKey: Maybe(
        Type.String({
          pattern: '^[\\x21-\\x7e]{1,255}$',
          description:
            'An Idempotency-Key of this post alone, in one space with those of POST /posts. Absent: the key of the call and the place in the list.',
          expects: '1 to 255 visible ASCII characters, such as post-2026-02-02-1',
        }),
      ),
    },
    { description: 'A post as it is composed, with a key of its own.' },
  ),
);
export type PostBulkItem = Cleaned<typeof PostBulkItem>;

export const PostBulk = Named(
  'PostBulk',
  Type.Object(
    {
      posts: Type.Array(PostBulkItem, {
        minItems: 1,
        maxItems: maxBulkPosts,
        description: 'Bodies of POST /posts, each at most 1 MiB.',
      }),
    },
    { description: 'Posts to be created.' },
  ),
);

const Index = Type.Integer({ minimum: 0, maximum: maxBulkPosts - 1, description: 'Its place in `posts`, from 0.' });

const PostBulkOutcome = Named(
  'PostBulkOutcome',
  Type.Object(
    {
      index: Index,
      status: said(
        OpenEnum(
          'PostBulkStatus',
          ['created', 'rejected'],
          'created: the post exists, made by this call or by an earlier one under its key; rejected: it was refused, and nothing of it is stored.',
        ),
        'What became of it.',
      ),
      post: Type.Optional(said(Post, 'The post as it was created; absent where it was rejected.')),
      error: Type.Optional(
        said(
          Problem,
          'What POST /posts would have answered, its pointers relative to the entry; absent where it was created.',
        ),
      ),
    },
    { description: 'What became of one entry.' },
  ),
);

export const PostBulkResult = Named(
  'PostBulkResult',
  Type.Object(
    {
      object: Type.Literal('post_bulk_result', { description: 'The kind of resource.' }),
      results: Type.Array(PostBulkOutcome, { description: 'One for each entry, in the order of `posts`.' }),
      created: Type.Integer({ minimum: 0, maximum: maxBulkPosts, description: 'Entries that were created.' }),
      rejected: Type.Integer({ minimum: 0, maximum: maxBulkPosts, description: 'Entries that were rejected.' }),
    },
    { description: 'What became of the entries of a bulk call.' },
  ),
);
