/**
 * SQL of the campaign that a post shows: none once the campaign is deleted. The row keeps it, as the events do.
 * NOTE: not as `exists`: Postgres may read all deleted campaigns into a hash for it.
 * @param posts name or alias of `read.posts`
 */
export const shownCampaignOf = (posts: string): string =>
  `case when ${posts}.campaign_id is not null
     and (select c.deleted_at from read.campaigns c where c.id = ${posts}.campaign_id) is null
   then ${posts}.campaign_id end`;
