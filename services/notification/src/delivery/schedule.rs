//! When deliveries are sent, as SQL expressions: at the end of the window of a batch or of the period of a digest, and
//! not for the first time in quiet hours. The time is an argument, so that the same expression plans deliveries, finds
//! those that are due, and can be tested.

/// Returns the time when a delivery that is added to a webhook at a time is due.
pub(super) fn due_at(webhook: &str, now: &str) -> String {
    let (zone, quiet_end) = (zone(webhook), quiet_end(webhook, "planned"));
    // The rest of the hour is added to the time. Converted back, a local time that occurs twice is the second one.
    format!(
        "(
             select coalesce({quiet_end}, planned)
             from (
                 select case
                     when {webhook}.digest = 'Hourly' then
                         {now} + (date_trunc('hour', local) + interval '1 hour' - local)
                     when {webhook}.digest = 'Daily' then
                         (date_trunc('day', local - interval '8 hours') + interval '1 day 8 hours')
                             at time zone zone
                     when {webhook}.batch_size > 1 then
                         {now} + make_interval(secs => {webhook}.batch_window_in_sec)
                     else {now}
                 end as planned
                 from (select {zone} as zone offset 0) as place,
                      lateral (select {now} at time zone zone as local) as day
                 offset 0
             ) as plan
         )"
    )
}

/// Returns the end of the quiet hours of a webhook that a time is in, or null. PostgreSQL takes a local time that
/// occurs twice for the second one, and one that does not occur for an hour later.
pub(super) fn quiet_end(webhook: &str, at: &str) -> String {
    let zone = zone(webhook);
    let (from, until) = (format!("{webhook}.quiet_from"), format!("{webhook}.quiet_until"));
    format!(
        "case when {from} is not null then (
             select case
                 when {from} > {until} and clock >= {from} then
                     (date_trunc('day', local) + interval '1 day' + {until}::interval) at time zone zone
                 when clock < {until} and ({from} > {until} or clock >= {from}) then
                     (date_trunc('day', local) + {until}::interval) at time zone zone
             end
             from (select {zone} as zone offset 0) as place,
                  lateral (select {at} at time zone zone as local) as day,
                  lateral (select to_char(local, 'HH24:MI') as clock) as hour
         ) end"
    )
}

/// Returns the time zone of a webhook, or UTC if PostgreSQL has lost it. With `offset 0`, a query looks it up once.
fn zone(webhook: &str) -> String {
    format!(
        "case when {webhook}.time_zone = 'UTC' then 'UTC' else known_time_zone({webhook}.time_zone) end"
    )
}

#[cfg(test)]
mod tests {
    use anyhow::Result;
    use assay_testkit::TestDatabase;
    use sqlx::{AssertSqlSafe, PgPool};

    use super::*;

    /// Evaluates [`due_at`] for the settings `Digest`, `QuietFrom`, `QuietUntil` and `TimeZone`.
    async fn planned(db: &PgPool, settings: [&str; 4], now: &str) -> Result<String> {
        let due = sqlx::query_scalar(AssertSqlSafe(format!(
            "select to_char({} at time zone 'UTC', 'MM-DD HH24:MI')
             from (select $2::text as digest, nullif($3::text, '') as quiet_from,
                          nullif($4::text, '') as quiet_until, $5::text as time_zone,
                          1 as batch_size, 5 as batch_window_in_sec) as webhook",
            due_at("webhook", "$1::timestamptz")
        )));
        let [digest, quiet_from, quiet_until, time_zone] = settings;
        let due = due.bind(now).bind(digest).bind(quiet_from).bind(quiet_until).bind(time_zone);
        Ok(due.fetch_one(db).await?)
    }

    #[tokio::test]
    async fn deliveries_are_planned_by_local_clocks_also_when_these_change() -> Result<()> {
        let database = TestDatabase::create("notification", &crate::migrations()).await?;
        let db = PgPool::connect_with(database.options).await?;
        let [hourly, daily, by_night, until_half_past_two] = [
            ["Hourly", "", "", "Europe/Berlin"],
            ["Daily", "", "", "Europe/Berlin"],
            ["None", "22:00", "07:00", "Europe/Berlin"],
            ["None", "22:00", "02:30", "Europe/Berlin"],
        ];
        for (settings, now, due) in [
            (hourly, "2026-06-01 10:10Z", "06-01 11:00"),
            // The clocks repeat the hour from two to three.
            (hourly, "2026-10-25 00:10Z", "10-25 01:00"),
            (hourly, "2026-10-25 01:10Z", "10-25 02:00"),
            // They skip it.
            (hourly, "2026-03-29 00:10Z", "03-29 01:00"),
            (["Hourly", "", "", "Asia/Kolkata"], "2026-06-01 00:10Z", "06-01 00:30"),
            (["Hourly", "22:00", "07:00", "Europe/Berlin"], "2026-06-01 19:10Z", "06-02 05:00"),
            (daily, "2026-10-24 05:50Z", "10-24 06:00"),
            (daily, "2026-10-24 12:00Z", "10-25 07:00"),
            (["Daily", "", "", "Pacific/Atlantis"], "2026-10-24 12:00Z", "10-25 08:00"),
            (by_night, "2026-10-24 19:59Z", "10-24 19:59"),
            (by_night, "2026-10-24 20:00Z", "10-25 06:00"),
            (by_night, "2026-10-25 05:59Z", "10-25 06:00"),
            (by_night, "2026-10-25 06:00Z", "10-25 06:00"),
            (["None", "09:00", "17:00", "UTC"], "2026-10-25 09:00Z", "10-25 17:00"),
            (["None", "09:00", "17:00", "UTC"], "2026-10-25 08:59Z", "10-25 08:59"),
            (until_half_past_two, "2026-10-25 00:10Z", "10-25 01:30"),
            (until_half_past_two, "2026-03-29 00:50Z", "03-29 01:30"),
        ] {
            assert_eq!(planned(&db, settings, now).await?, due, "{settings:?} {now}");
        }
        Ok(())
    }
}
