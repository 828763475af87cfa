import { Type } from 'typebox';
import { Uuid } from '#schemas/common.ts';
import { Named, said } from '#schemas/published.ts';
import { type Cleaned, Problem, UuidInput } from './common.ts';

/** POST /campaigns/{id}/assign and /unassign: posts that join a campaign or leave it. */

export const CampaignPosts = Named(
  'CampaignPosts',
  Type.Object(
    {
      postIds: Type.Array(UuidInput, {
        minItems: 1,
        maxItems: 100,
        description: 'The posts. One that is listed twice counts once.',
      }),
    },
    { description: 'Posts that are to join a campaign, or to leave it.' },
  ),
);
export type CampaignPosts = Cleaned<typeof CampaignPosts>;

const CampaignPostOutcome = Named(
  'CampaignPostOutcome',
  Type.Object(
    {
      postId: said(Uuid, 'The post, as it was sent.'),
      ok: Type.Boolean({ description: 'Whether the post is now as asked for.' }),
      revision: Type.Optional(
        Type.Integer({ minimum: 0, description: 'Revision of the post; absent where it was refused.' }),
      ),
      error: Type.Optional(said(Problem, 'Why the post was refused; absent where it was not.')),
    },
    { description: 'What became of one post.' },
  ),
);

export const CampaignPostsResult = Named(
  'CampaignPostsResult',
  Type.Object(
    {
      object: Type.Literal('campaign_posts_result', { description: 'The kind of resource.' }),
      campaignId: said(Uuid, 'The campaign.'),
      revision: Type.Integer({ minimum: 0, description: 'Revision of the campaign, which the call does not change.' }),
      results: Type.Array(CampaignPostOutcome, {
        description: 'One for each post, in the order in which they were first listed.',
      }),
    },
    { description: 'What became of the posts.' },
  ),
);
