import { type Static, Type } from 'typebox';
import { CampaignDescription, CampaignName, Color, campaignWords } from '#schemas/campaign.ts';
import { Nullable, Uuid } from '#schemas/common.ts';
import { LocalDate } from '#schemas/insights.ts';
import { Named, said } from '#schemas/published.ts';
import { asOfQuery, Maybe, paging, Resettable, stamps, UuidInput } from './common.ts';

/** A campaign, as callers send it and see it. */

const ColorInput = Type.String({
  pattern: '^#[0-9a-fA-F]{6}$',
  expects: 'a color, such as #1f6feb',
  description: campaignWords.color,
  examples: ['#1f6feb'],
});
const clientWords =
  'The client that it belongs to: it then takes only posts of this client. Null: it belongs to none, and takes any post.';
const Name = said(CampaignName, campaignWords.name, { examples: ['Spring'] });
const first = { examples: ['2026-02-01'] };
const last = { examples: ['2026-03-31'] };
const StartsOn = said(LocalDate, campaignWords.startsOn, first);
const EndsOn = said(LocalDate, campaignWords.endsOn, last);
const About = said(CampaignDescription, campaignWords.description);

export const CampaignCreate = Named(
  'CampaignCreate',
  Type.Object(
    {
      name: Name,
      clientId: Maybe(said(UuidInput, `${clientWords} It never changes.`)),
      color: Maybe(ColorInput),
      startsOn: Maybe(StartsOn),
      endsOn: Maybe(EndsOn),
      description: Maybe(About),
    },
    { description: 'A campaign as it is created.' },
  ),
);

export const CampaignUpdate = Named(
  'CampaignUpdate',
  Type.Object(
    {
      name: Maybe(Name),
      color: Resettable(ColorInput, null),
      startsOn: Resettable(StartsOn, null),
      endsOn: Resettable(EndsOn, null),
      description: Resettable(About, null),
    },
    { description: 'Changes of a campaign: only the members that are sent change; null clears a member.' },
  ),
);

export const CampaignQuery = Type.Object({
  ...paging,
  ...asOfQuery,
  clientId: Maybe(said(UuidInput, 'Only campaigns of this client.')),
});

export const Campaign = Named(
  'Campaign',
  Type.Object(
    {
      id: said(Uuid, 'Id of the campaign.'),
      object: Type.Literal('campaign', { description: 'The kind of resource.' }),
      name: Type.String({ description: campaignWords.name, examples: ['Spring'] }),
      clientId: said(Nullable(Uuid), clientWords),
      color: said(Nullable(Color), campaignWords.color, { examples: ['#1f6feb'] }),
      startsOn: said(Nullable(LocalDate), campaignWords.startsOn, first),
      endsOn: said(Nullable(LocalDate), campaignWords.endsOn, last),
      description: said(Nullable(Type.String()), campaignWords.description),
      postCount: Type.Integer({ minimum: 0, description: 'Number of its posts, drafts included.' }),
      ...stamps,
    },
    { description: 'A name under which posts are planned, and by which their times are moved together.' },
  ),
);
export type Campaign = Static<typeof Campaign>;
