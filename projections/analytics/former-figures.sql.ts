/** What `presentFigures` of the domain says of counters, for stored rows. */
const present: Readonly<Record<string, string>> = {
  follows: "if(platform = 'x', coalesce(follows, subscribers_gained), follows)",
  subscribers_gained: "if(platform = 'x', null, subscribers_gained)",
  subscribers_lost: "if(platform = 'x', null, subscribers_lost)",
  link_clicks: "if(platform in ('facebook', 'linkedin', 'pinterest'), null, link_clicks)",
};

/** The expression of a counter's column in a row that has `platform`. */
export const presentColumn = (column: string): string => present[column] ?? column;
