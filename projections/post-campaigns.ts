/**
 * SQL of the campaign that a post shows: none once the campaign is deleted. The row keeps it, as the events do.
 * @param posts name or alias of `read.posts`
 */
export const shownCampaignOf = (posts: string): string =>
  `case when ${posts}.campaign_id is not null and ${isKept(posts)} then ${posts}.campaign_id end`;

/** NOTE: not as `exists`: Postgres may read all deleted campaigns into a hash for it. */
const isKept = (posts: string): string =>
  `(select c.deleted_at from read.campaigns c where c.id = ${posts}.campaign_id) is null`;

/** Posts of the campaign `?`; none once it is deleted. */
export const isOfCampaign = (posts: string): string => `${posts}.campaign_id = ?::uuid and ${isKept(posts)}`;
