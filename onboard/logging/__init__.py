"""Every tick on disk: record layout, journal, recorder process, rollout files and their reader."""
