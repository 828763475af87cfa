import { PostBulk, PostBulkResult } from '#schemas/http/post-bulk.ts';
import { operation } from '../operation.ts';
import { createPosts } from '../posts/bulk.ts';
import { bulkExample } from '../posts/examples.ts';

export const bulkCreatePosts = operation({
  id: 'bulkCreatePosts',
  method: 'POST',
  path: '/posts/bulk',
  tag: 'posts',
  summary: 'Create up to 50 posts',
  description: [
    'Each entry of `posts` is a body of POST /posts and is checked as that operation does. An entry that is rejected harms no other: the call answers 200 with a result for each, and the problem of a rejected one has its pointers relative to the entry. A body that is not `{posts: […]}` refuses the call.',
    'With an Idempotency-Key, a repeat of the call answers the same results. If the call was cut off, or answered 503, repeat it under the same key: it finds the posts that were created and creates the rest. An entry may have an `idempotencyKey` of its own, in one space with the keys of POST /posts: the post under it is answered, or created; two entries with one key are one post.',
    'Counts as one request for each entry, taken as debt. The body has at most 16 MiB and 100,000 values, each entry at most 1 MiB and 10,000 values.',
  ].join('\n\n'),
  scope: 'posts.compose',
  idempotent: 'accepted',
  cost: 1,
  bodyLimit: 16 * 1024 * 1024,
  valueLimit: 100_000,
  entries: 'posts',
  body: PostBulk,
  answer: PostBulkResult,
  codes: ['validation_failed'],
  example: bulkExample,
  handle: (call) => createPosts(call),
});
