(CNN) -- Story 2 begins

  It "goes on"  
and ends.

@highlight

First point 2

@highlight

Second”
